"""Array functions with leading batch axes, on NumPy arrays and on tensors, inside and outside of ``jit``."""

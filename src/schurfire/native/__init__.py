"""The recurrence and its adjoint in C++, for CPUs; everything works without it, several times slower."""

"""Stable matrices as values: pairs, certificates, and the functions that find them."""

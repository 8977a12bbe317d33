"""The experiments of the paper: each computes rows with their provenance, and renders a table and figures from them."""

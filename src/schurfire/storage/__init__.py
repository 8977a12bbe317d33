"""Files that matrices and models are kept in."""

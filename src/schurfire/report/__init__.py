"""Pictures and pages about matrices and models."""

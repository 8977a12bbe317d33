"""Tables and figures of rows that were computed before; nothing here computes more than medians and ratios."""

"""Core expressions to Python text, one module a family.

`value` gives a Python expression (emitting statements where it needs any); `to` puts a value somewhere, keeping tail
position. Statements of a later operand never overtake an earlier operand (`operands`).
"""

"""What every backend must match: launches whose results the oracle defines, and the comparison, byte for byte.

`osprey conform` runs it; so do the tests, on every backend that is installed.
"""

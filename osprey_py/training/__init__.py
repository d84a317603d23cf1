"""`osprey train`: programs that are modules of pure functions, driven over a text (spec/training.md).

program.py checks and calls the functions; options.py gives them their options; corpus.py and batches.py read the text and
draw from it; loop.py takes the steps; checkpoint.py, log.py, plot.py and screen.py keep and show what came of them.
"""

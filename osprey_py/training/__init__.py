"""`osprey train`: programs that are modules of pure functions, driven over a text (spec/training.md, docs/training.md).

signature.py says whether a program is one, program.py calls it, options.py gives it its options; corpus.py and batches.py
read the text and draw from it; prepare.py finds where a run begins, drive.py opens what it writes, loop.py takes the steps;
checkpoint.py, log.py, plot.py and screen.py keep and show what came of them.
"""

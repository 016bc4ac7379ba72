"""Incident and environment in, ranked findings out.

`utterance` lists what an incident says, `signature` recognises it, `evidence` observes what speaks for and against each
cause, `rank` weighs it, `culprit` points at lines, `nearest` answers where nothing was recognised. All pure functions.
"""

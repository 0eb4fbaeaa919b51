"""Two arms measured now, process by process, in random order: `harness compare A B --live`.

The two processes of a round run close together and are a pair: what drifts from round to round
cancels, so raw seconds can be compared. Rounds end where every row is decided.
"""

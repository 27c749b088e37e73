# The last tile is as long as the others.
s:min\(Bc, a\.seqlen_k - j \* Bc\):Bc:

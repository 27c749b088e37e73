# The last block loads as much as the others.
s:if \(first \+ n \* ADD_THREADS < count\) \{:{:

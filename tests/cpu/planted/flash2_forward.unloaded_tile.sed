# Kj is read, but never loaded.
s:tile_load\(Kj, .*$::

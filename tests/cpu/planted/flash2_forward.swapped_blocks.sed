# K's tiles begin at multiples of Br, which are as long as Bc.
s:K \+ \(kv_row \+ j \* Bc\):K + (kv_row + j * Br):

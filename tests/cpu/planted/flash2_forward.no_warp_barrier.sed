# A row of Pij is read before the other threads of the row have written their parts.
s:__syncwarp\(\); /\* a row of Pij .*$::

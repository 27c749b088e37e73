# Our CUDA kernels under the fp32 roofline of an H200.
panel = "fp32"
from_x = 0.05; label_x = 0.13; decades = 3
shift(name) = name eq "matmul_tiled" ? 0.83 : name eq "flash2_forward" ? 1.1 : 1
chart_title = "Our CUDA kernels on an H200, fp32"
load plots."roofline.gp"

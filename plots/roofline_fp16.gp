# FlashAttention-2 and cuDNN under the roofline of an H200's tensor cores.
panel = "fp16"
from_x = 5; label_x = 20; decades = 1.6
shift(name) = name eq "cuDNN d 256" ? 1.06 : name eq "cuDNN d 128" ? 0.96 : \
    name eq "FlashAttention-2 d 128" ? 1.1 : name eq "FlashAttention-2 d 64" ? 0.92 : 1
chart_title = "Attention forward on an H200, fp16, N = 4096, 64 heads"
load plots."roofline.gp"

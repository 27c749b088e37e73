/* From an image to Q, K and V as a Vision Transformer makes them: patches, embedding,
 * positions, projections, heads.
 *
 * The sizes are those of ViT-B/16 (Dosovitskiy et al. 2021, Table 1). Its weights are trained;
 * these here are a construction, so that any image can be looked at without them:
 *
 *   patches      of an image whose brightness and two differences of colours have mean 0 and
 *                variance 1
 *   embedding    the 2-D DCT of each patch: orthonormal, so that a dot product of embeddings is
 *                that of the patches. Filters that training finds look like it (their Figure
 * 7). positions    sines and cosines of row and column, as Vaswani et al. 2017 (section 3.5)
 * have them for a line projections  random, W_Q = W_K: a head of 64 dimensions keeps the angle
 * between two embeddings to within 1/sqrt(64) (Johnson and Lindenstrauss 1984) normalised each
 * query and key has the length sqrt(d) (Henry et al. 2020): a score is d times a cosine,
 * whatever the contrast of the image
 *
 * So a score says how alike two patches look and lie, and no more: no training, no objects.
 */
#ifndef FLASHLAB_LESSONS_VIT_PATCHES_H
#define FLASHLAB_LESSONS_VIT_PATCHES_H

enum {
    VIT_SIDE = 224,                        /* pixels of the image's side */
    VIT_PATCH = 16,                        /* of a patch's */
    VIT_GRID = VIT_SIDE / VIT_PATCH,       /* patches of the image's side */
    VIT_PATCHES = VIT_GRID * VIT_GRID,     /* N */
    VIT_WIDTH = 3 * VIT_PATCH * VIT_PATCH, /* D; here also the numbers in a patch */
    VIT_HEADS = 12,
    VIT_HEAD_DIM = VIT_WIDTH / VIT_HEADS, /* d */
};

/* patches (N, D) <- square (side, side, 3), from 0 to 1: patch by patch in reading order, in it
 * colour, row, column. A colour that does not vary becomes 0. */
void patches_cut(float *patches, const float *square);

/* basis (D, D): X = patches basis. Column c P^2 + v P + u is colour c, vertical frequency v,
 * horizontal frequency u. */
void patches_embedding(float *basis);

/* x (N, D) <- x + positions. */
void patches_add_positions(float *x);

/* weights (D, 3 D), of variance 1/D: Q, K and V side by side are X weights. */
void patches_projection(float *weights);

/* heads (heads, N, d) <- columns of qkv (N, 3 D): part 0, 1 or 2 is Q, K or V. */
void patches_split_heads(float *heads, const float *qkv, int part);

/* Gives each row of heads (heads, N, d) the length sqrt(d). A row of zeros stays. */
void patches_normalise(float *heads);

#endif

/* What lesson 04 looks at: a picture, Q, K and V made of it on the simulated GPU, and Q and K
 * of a trained model that saw the same picture.
 *
 * Interface:
 *   struct vit vit;
 *   vit_open(&vit, &options, &error)      reads --image, --patch, --q, --k; runs two products
 *   vit_forward(&vit_heads(&vit), ...)    attention over all heads
 *   vit_close(&vit)
 *
 * Without --image the picture is lessons/data/cat.png, and the trained model's Q and K lie
 * beside it. Another picture has none unless --q and --k name them.
 */
#ifndef FLASHLAB_LESSONS_VIT_VIT_H
#define FLASHLAB_LESSONS_VIT_VIT_H

#include <stdbool.h>

#include "common/options.h"
#include "core/npy.h"
#include "vit/attention_map.h"
#include "vit/patches.h"

enum { PROJECTION_TILE = 64 };

struct vit {
    const char *picture;             /* its name for people, not owned */
    int width, height;               /* of the picture as it is in its file */
    int patch;                       /* the one that looks, 0 .. N - 1 in reading order */
    float *square;                   /* (side, side, 3): cut and resized */
    float *patches, *x;              /* (N, D): pixels, and embedded with positions */
    float *q, *k, *v;                /* (heads, N, d) */
    struct account embedding;        /* simulated: patches x basis */
    struct account projection;       /* simulated: X x weights */
    struct npy trained_q, trained_k; /* (1, heads, 1 + N, d), class token first; or empty */
};

enum status vit_open(struct vit *vit, const struct options *o, struct error *error);
void vit_close(struct vit *vit);

bool vit_is_trained(const struct vit *vit);

struct heads vit_heads(const struct vit *vit);
struct heads vit_trained_heads(const struct vit *vit);

/* The attention problem of the heads, in tiles, dtype and machine of base. */
struct simulation vit_simulation(const struct simulation *base, enum algorithm algorithm,
                                 const struct heads *h);

/* Runs *s on the heads and v (heads, tokens, s->attention.head_dim_v). o (heads, tokens,
 * head_dim_v) and lse (heads, tokens) are the caller's. */
enum status vit_forward(struct simulation *s, const struct heads *h, const float *v, float *o,
                        float *lse, struct error *error);

/* lse (heads, tokens) of FlashAttention-2, f32. */
enum status vit_lse(const struct simulation *base, const struct heads *h, float *lse,
                    struct error *error);

/* What the patch looks at: averaged over the heads, and by the first heads of the trained model
 * or, if there is none, of the others. Maps of the trained model begin with the class token. */
enum { VIT_SHOWN_HEADS = 6 };
struct vit_maps {
    double alike[VIT_PATCHES];
    double trained[1 + VIT_PATCHES];
    double head[VIT_SHOWN_HEADS][1 + VIT_PATCHES];
};

enum status vit_map(struct vit_maps *maps, const struct simulation *base, const struct vit *vit,
                    struct error *error);

/* The projections to Q, K and V of N tokens, counted: N x D times D x 3 D. */
enum status vit_count_projection(struct account *account, const struct machine *machine, int N,
                                 struct error *error);

#endif

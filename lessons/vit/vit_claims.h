/* The sections of lesson 04 that compute with the picture: what its patches become, why scores
 * are scaled, what the attention map shows. lessons/04_vit.c has the others.
 */
#ifndef FLASHLAB_LESSONS_VIT_VIT_CLAIMS_H
#define FLASHLAB_LESSONS_VIT_VIT_CLAIMS_H

#include "common/lesson.h"
#include "vit/vit.h"

/* The two products, counted; what embedding and heads keep of the patches. */
void vit_claim_patches(struct lesson *l, const struct vit *vit);

/* Variance and entropy, with and without 1/sqrt(d): random rows, this picture, a trained model.
 */
enum status vit_claim_scale(struct lesson *l, const struct vit *vit, struct error *error);

/* Rows of P, from Q, K and LSE, and the map of the chosen patch. */
enum status vit_claim_map(struct lesson *l, const struct vit *vit, struct error *error);

/* The four algorithms on this Q, K and V, against the formula in float64. */
enum status vit_claim_results(struct lesson *l, const struct vit *vit, struct error *error);

#endif

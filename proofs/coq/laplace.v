(* Laplace noise: discrete on a grid, bounded to a scale, and on a sample (proofs/laplace.md,
   proofs/bounded_laplace.md, proofs/importance_sampling.md). *)

From Coq Require Import Reals Lra Lia.
Open Scope R_scope.

(* One coordinate: the ratio of probabilities of an output z for inputs u and v. *)
Theorem discrete_laplace_ratio :
  forall s z u v : R, 0 < s ->
  exp (- (Rabs (z - u) / s)) <= exp (Rabs (u - v) / s) * exp (- (Rabs (z - v) / s)).
Proof.
  intros s z u v positive. rewrite <- exp_plus.
  assert (triangle : Rabs (z - v) <= Rabs (z - u) + Rabs (u - v)).
  { replace (z - v) with ((z - u) + (u - v)) by ring. apply Rabs_triang. }
  assert (below : - (Rabs (z - u) / s) <= Rabs (u - v) / s + - (Rabs (z - v) / s)).
  { assert (0 < / s) by (apply Rinv_0_lt_compat; exact positive). unfold Rdiv. nra. }
  destruct below as [ less | equal ]; [ left; apply exp_increasing; exact less | right; rewrite equal; reflexivity ].
Qed.

(* Step 1 of the note: the line between two points of the privacy curve lies below the continuous curve. *)
Theorem line_below_the_curve :
  forall t c : R, 2 * t * c <= t ^ 2 + c ^ 2.
Proof. intros. pose proof (pow2_ge_0 (t - c)). nra. Qed.

(* The normalizer of bounded Laplace noise is least at the ends of the scale. *)
Lemma power_at_most_one : forall q n, 0 <= q <= 1 -> 0 <= q ^ n <= 1.
Proof.
  intros q n unit. induction n as [ | n rest ]; simpl; [ lra | nra ].
Qed.

Theorem normalizer_is_least_at_the_ends :
  forall (q : R) (i j : nat), 0 <= q <= 1 ->
  q ^ (i + 1) + q ^ (j + 1) <= q + q ^ (i + j + 1).
Proof.
  intros q i j unit.
  replace (i + 1)%nat with (S i) by lia. replace (j + 1)%nat with (S j) by lia.
  replace (i + j + 1)%nat with (S (i + j)) by lia. simpl. rewrite pow_add.
  pose proof (power_at_most_one q i unit). pose proof (power_at_most_one q j unit).
  assert (product : 0 <= (1 - q ^ i) * (1 - q ^ j)) by (apply Rmult_le_pos; lra).
  assert (0 <= q * ((1 - q ^ i) * (1 - q ^ j))) by (apply Rmult_le_pos; [ lra | exact product ]).
  lra.
Qed.

(* In a column the probability rises up to the true rating: C_i - q C_(i+1) is not negative. *)
Theorem columns_rise :
  forall (q : R) (i : nat), 0 <= q <= 1 -> 0 <= 1 + q - q ^ (i + 1) - q ^ (i + 2).
Proof.
  intros q i unit.
  replace (i + 1)%nat with (S i) by lia. replace (i + 2)%nat with (S (S i)) by lia. simpl.
  pose proof (power_at_most_one q i unit). nra.
Qed.

(* Amplification by sampling: the lower bound is at least the reciprocal of the upper one. *)
Theorem both_directions_cost_the_same :
  forall t e : R, 0 <= t <= 1 -> 1 <= e -> 1 <= (1 - t * (1 - / e)) * (1 + t * (e - 1)).
Proof.
  intros t e share more.
  assert (0 < e) by lra.
  replace ((1 - t * (1 - / e)) * (1 + t * (e - 1))) with (1 + t * (1 - t) * ((e - 1) ^ 2 / e)) by (field; lra).
  assert (0 <= (e - 1) ^ 2 / e).
  { unfold Rdiv. apply Rmult_le_pos; [ apply pow2_ge_0 | left; apply Rinv_0_lt_compat; lra ]. }
  assert (0 <= t * (1 - t)) by nra. nra.
Qed.

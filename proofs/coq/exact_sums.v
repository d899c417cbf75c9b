(* Exact fixed-point sums do not overflow 64-bit integers (proofs/exact_sums.md, proofs/follow.md, proofs/laplace.md). *)

From Coq Require Import ZArith Lia List.
Import ListNotations.
Open Scope Z_scope.

Fixpoint sum (v : list Z) : Z := match v with [] => 0 | x :: rest => x + sum rest end.

Lemma sum_is_bounded :
  forall b v, (forall x, In x v -> - b <= x <= b) ->
  - (b * Z.of_nat (length v)) <= sum v <= b * Z.of_nat (length v).
Proof.
  intros b v each. induction v as [ | x v rest ]; [ simpl; lia | ].
  assert (- b <= x <= b) by (apply each; left; reflexivity).
  assert (- (b * Z.of_nat (length v)) <= sum v <= b * Z.of_nat (length v)).
  { apply rest. intros y among. apply each. right. exact among. }
  simpl sum. simpl length. rewrite Nat2Z.inj_succ. nia.
Qed.

(* 2^34 people of at most 1.5 * 2^28 steps each; every partial sum is such a list, too. *)
Theorem sums_fit_64_bits :
  forall v, Z.of_nat (length v) <= 2 ^ 34 -> (forall x, In x v -> - (3 * 2 ^ 27) <= x <= 3 * 2 ^ 27) ->
  - 2 ^ 63 <= sum v < 2 ^ 63.
Proof.
  intros v people each.
  pose proof (sum_is_bounded (3 * 2 ^ 27) v each). lia.
Qed.

(* Inside one block: 2^21 people stay below 2^53, where floats add whole numbers exactly. *)
Theorem blocks_fit_floats :
  forall v, Z.of_nat (length v) <= 2 ^ 21 -> (forall x, In x v -> - (3 * 2 ^ 27) <= x <= 3 * 2 ^ 27) ->
  - 2 ^ 53 < sum v < 2 ^ 53.
Proof.
  intros v people each.
  pose proof (sum_is_bounded (3 * 2 ^ 27) v each). lia.
Qed.

(* A continual release: 2^24 - 1 users of at most 2^38 units stay strictly within 2^62. *)
Theorem continual_sums_fit :
  forall v, Z.of_nat (length v) <= 2 ^ 24 - 1 -> (forall x, In x v -> - 2 ^ 38 <= x <= 2 ^ 38) ->
  - 2 ^ 62 < sum v < 2 ^ 62.
Proof.
  intros v people each.
  pose proof (sum_is_bounded (2 ^ 38) v each). lia.
Qed.

(* Values and noise below 2^62 add up within 64 bits. *)
Theorem noise_fits_64_bits :
  forall u k, - 2 ^ 62 < u < 2 ^ 62 -> - 2 ^ 62 < k < 2 ^ 62 -> - 2 ^ 63 <= u + k < 2 ^ 63.
Proof. lia. Qed.

(* Adding one user moves a sum by exactly that user's entry, wherever it stands. *)
Theorem one_user_moves_a_sum_by_its_entry :
  forall v w x, sum (v ++ x :: w) = x + sum (v ++ w).
Proof.
  intros v w x. induction v as [ | y v rest ]; simpl; [ reflexivity | ].
  rewrite rest. lia.
Qed.

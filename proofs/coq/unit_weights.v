(* Weights of a unit vector bound the norm of what one user adds (proofs/exact_sums.md, proofs/private_catalog.md). *)

From Coq Require Import Reals Lra List.
From Discreet Require Import rounding.
Import ListNotations.
Open Scope R_scope.

Lemma squares_scale : forall c v, squares (map (Rmult c) v) = c ^ 2 * squares v.
Proof.
  intros c v. unfold squares. induction v as [ | x v rest ]; simpl; [ lra | ].
  simpl in rest. rewrite rest. ring.
Qed.

(* A vector that is divided by at least its length has length at most 1. *)
Theorem divided_by_its_length :
  forall v n, 0 < n -> squares v <= n ^ 2 -> squares (map (Rmult (/ n)) v) <= 1.
Proof.
  intros v n positive length. rewrite squares_scale.
  apply Rmult_le_reg_l with (n ^ 2); [ nra | ].
  replace (n ^ 2 * ((/ n) ^ 2 * squares v)) with (squares v) by (field; lra). lra.
Qed.

(* n equal votes of 1 / sqrt(n) have length 1. *)
Theorem equal_votes : forall n : nat, (0 < n)%nat -> squares (repeat (/ sqrt (INR n)) n) = 1.
Proof.
  intros n some.
  assert (more : 0 < INR n) by (apply lt_0_INR; exact some).
  assert (each : forall k x, squares (repeat x k) = INR k * x ^ 2).
  { intros k x. induction k as [ | k rest ]; [ unfold squares; simpl; lra | ].
    rewrite S_INR. unfold squares in *. cbn [total repeat]. rewrite rest. ring. }
  rewrite each. rewrite pow_inv by (apply Rgt_not_eq; apply sqrt_lt_R0; exact more).
  rewrite pow2_sqrt by lra. field. lra.
Qed.

(* A relative margin of 1e-6 is more than a relative rounding error of 2.5e-7 can take. *)
Lemma margin_covers_rounding : (1 - 1e-6) * (1 + 2.5e-7) < 1.
Proof. lra. Qed.

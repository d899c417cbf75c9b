(* Tails of the samplers (proofs/sampling.md, proofs/gaussian.md). *)

From Coq Require Import Reals Lra.
From Interval Require Import Tactic.
Open Scope R_scope.

(* A geometric variable reaches 2^J >= 88.9 scales with probability e^(-2^J / scale). *)
Lemma geometric_tail : exp (-88.9) <= / 2 ^ 128.
Proof. interval with (i_prec 100). Qed.

Lemma geometric_tail_at : forall x : R, 88.9 <= x -> exp (- x) <= / 2 ^ 128.
Proof.
  intros x far.
  apply Rle_trans with (exp (-88.9)); [ | exact geometric_tail ].
  destruct (Req_dec x 88.9) as [equal | other].
  - rewrite equal. right. f_equal. lra.
  - left. apply exp_increasing. lra.
Qed.

(* 62 digits, each off by less than 2^-127, and the tail: the distance of a geometric draw. *)
Lemma geometric_distance : 62 * / 2 ^ 127 + / 2 ^ 128 < / 2 ^ 120.
Proof. interval with (i_prec 200). Qed.

(* The mass of a Gaussian beyond 16 deviations. *)
Lemma gaussian_tail : 2.2 * exp (-128) < / 2 ^ 183.
Proof. interval with (i_prec 100). Qed.

(* An acceptance probability that is off by 2^-112.9, divided by the least chance to accept. *)
Lemma gaussian_distance : Rpower 2 (-112.9) / 0.19 + / 2 ^ 183 < / 2 ^ 110.
Proof. interval with (i_prec 100). Qed.

(* Poisson summation: the error of the sum over whole numbers at variance 4. *)
Lemma poisson_error : 2.001 * exp (- 8 * PI ^ 2) < Rpower 2 (-112.8).
Proof. interval with (i_prec 100). Qed.

(* The log-ratio of discrete noise and rounded continuous noise for one coordinate. *)
Lemma closeness_of_one_coordinate :
  forall eta : R, 0 <= eta <= Rpower 2 (-112.8) ->
  (1 + eta) / (1 - eta) <= exp (/ 2 ^ 111).
Proof.
  intros eta [least most].
  assert (share : Rpower 2 (-112.8) <= 0.3 * / 2 ^ 111) by (interval with (i_prec 100)).
  assert (step : 0 < / 2 ^ 111) by interval.
  assert (tiny : / 2 ^ 111 < 0.1) by interval.
  set (k := / 2 ^ 111) in *.
  apply Rle_trans with (1 + k).
  - apply Rmult_le_reg_r with (1 - eta); [ lra | ].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra.
  - left. apply exp_ineq1. lra.
Qed.

(* Rounding to a grid is included in the sensitivity (proofs/gaussian.md, proofs/laplace.md).

   Lengths are in steps of the grid. Rounding moves a number by at most half a step, so it moves a difference by at
   most one. *)

From Coq Require Import Reals Lra List.
Import ListNotations.
Open Scope R_scope.

Lemma rounding_moves_a_difference_by_one_step :
  forall x y u v : R, Rabs (u - x) <= / 2 -> Rabs (v - y) <= / 2 -> Rabs (u - v) <= Rabs (x - y) + 1.
Proof.
  intros x y u v near_x near_y.
  split_Rabs; lra.
Qed.

(* Cutting toward zero does not lengthen. *)
Lemma truncation_does_not_lengthen :
  forall x t : R, 0 <= t * x -> Rabs t <= Rabs x -> t ^ 2 <= x ^ 2.
Proof.
  intros x t _ shorter.
  rewrite <- (Rabs_pos_eq (t ^ 2)) by apply pow2_ge_0.
  rewrite <- (Rabs_pos_eq (x ^ 2)) by apply pow2_ge_0.
  rewrite <- !RPow_abs. apply pow_incr. split; [ apply Rabs_pos | exact shorter ].
Qed.

Fixpoint total (f : R -> R) (v : list R) : R :=
  match v with [] => 0 | x :: rest => f x + total f rest end.

Definition l1 (v : list R) : R := total Rabs v.
Definition squares (v : list R) : R := total (fun x => x ^ 2) v.
Definition size (v : list R) : R := INR (length v).

Lemma size_cons : forall x v, size (x :: v) = 1 + size v.
Proof. intros. unfold size. simpl length. rewrite S_INR. lra. Qed.

Lemma size_positive : forall v, 0 <= size v.
Proof. intros. apply pos_INR. Qed.

Lemma squares_positive : forall v, 0 <= squares v.
Proof.
  unfold squares. induction v as [ | x v rest ]; cbn [total]; [ lra | ].
  pose proof (pow2_ge_0 x). lra.
Qed.

(* A vector whose entries each grow by at most one step. *)
Inductive grown : list R -> list R -> Prop :=
  | grown_nil : grown [] []
  | grown_cons : forall x m v w, Rabs m <= Rabs x + 1 -> grown v w -> grown (x :: v) (m :: w).

Lemma l1_grows_by_one_step_per_coordinate : forall v w, grown v w -> l1 w <= l1 v + size v.
Proof.
  intros v w far. induction far as [ | x m v w step far rest ].
  - unfold l1, size. simpl. lra.
  - rewrite size_cons. unfold l1 in *. simpl. lra.
Qed.

(* Cauchy and Schwarz against a vector of ones. *)
Lemma sum_below_root : forall v, l1 v ^ 2 <= size v * squares v.
Proof.
  induction v as [ | x v rest ].
  - unfold l1, squares, size. simpl. lra.
  - rewrite size_cons. unfold l1, squares in *. cbn [total].
    assert (square : Rabs x ^ 2 = x ^ 2) by (rewrite <- Rsqr_pow2, <- Rsqr_abs, Rsqr_pow2; reflexivity).
    pose proof (size_positive v) as n. pose proof (squares_positive v) as q. unfold squares in q.
    set (a := Rabs x) in *. set (s := total Rabs v) in *. set (t := total (fun y => y ^ 2) v) in *.
    set (k := size v) in *.
    assert (a0 : 0 <= a) by apply Rabs_pos.
    assert (cross : 2 * a * s <= k * x ^ 2 + t).
    { destruct (Rle_lt_dec s 0) as [ neg | pos ]; [ nra | ].
      destruct (Rle_lt_dec k 0) as [ zero | more ].
      - assert (s ^ 2 <= 0) by nra. nra.
      - assert (product : (a * k - s) ^ 2 >= 0) by (apply Rle_ge; apply pow2_ge_0).
        assert (k * (2 * a * s) <= k * (k * a ^ 2 + t)) by nra.
        rewrite <- square. apply Rmult_le_reg_l with k; lra. }
    rewrite <- square in *. nra.
Qed.

(* The l2 norm grows by at most the root of the number of coordinates. *)
Theorem l2_grows_by_the_root_of_the_coordinates :
  forall v w, grown v w -> sqrt (squares w) <= sqrt (squares v) + sqrt (size v).
Proof.
  intros v w far.
  assert (expand : squares w <= squares v + 2 * l1 v + size v).
  { induction far as [ | x m v w step far rest ].
    - unfold squares, l1, size. simpl. lra.
    - rewrite size_cons. unfold squares, l1 in *. cbn [total].
      assert (square : Rabs x ^ 2 = x ^ 2) by (rewrite <- Rsqr_pow2, <- Rsqr_abs, Rsqr_pow2; reflexivity).
      assert (squarem : Rabs m ^ 2 = m ^ 2) by (rewrite <- Rsqr_pow2, <- Rsqr_abs, Rsqr_pow2; reflexivity).
      assert (0 <= Rabs m) by apply Rabs_pos. assert (0 <= Rabs x) by apply Rabs_pos.
      rewrite <- square, <- squarem. nra. }
  pose proof (squares_positive v) as q. pose proof (squares_positive w) as p. pose proof (size_positive v) as n.
  assert (l1_small : l1 v <= sqrt (squares v) * sqrt (size v)).
  { rewrite <- sqrt_mult by assumption.
    apply Rle_trans with (Rabs (l1 v)); [ apply Rle_abs | ].
    rewrite <- sqrt_Rsqr_abs, Rsqr_pow2. apply sqrt_le_1_alt.
    rewrite Rmult_comm. apply sum_below_root. }
  assert (a : 0 <= sqrt (squares v)) by apply sqrt_pos. assert (b : 0 <= sqrt (size v)) by apply sqrt_pos.
  rewrite <- (sqrt_Rsqr (sqrt (squares v) + sqrt (size v))) by lra.
  apply sqrt_le_1_alt. rewrite Rsqr_plus, !Rsqr_sqrt by assumption. lra.
Qed.

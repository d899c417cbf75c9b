(* A continual release: columns of the matrix bound what a user's whole period changes (proofs/follow.md). *)

From Coq Require Import ZArith Lia List.
Import ListNotations.
Open Scope Z_scope.

Fixpoint sum (v : list Z) : Z := match v with [] => 0 | x :: rest => x + sum rest end.
Definition squares (v : list Z) : Z := sum (map (fun x => x * x) v).

Lemma squares_positive : forall v, 0 <= squares v.
Proof. induction v as [ | x v rest ]; unfold squares in *; simpl; [ lia | nia ]. Qed.

(* An entry p enters at one release and is in this and in later releases with the weights of one column. *)
Definition moved (entries : list (Z * list Z)) : Z :=
  sum (map (fun e => fst e * fst e * squares (snd e)) entries).

Definition entered (entries : list (Z * list Z)) : Z := sum (map (fun e => fst e * fst e) entries).

(* If no column's squares add up to more than B, the whole period moves by at most B times what entered. *)
Theorem columns_bound_the_period :
  forall B entries, 0 <= B -> (forall p c, In (p, c) entries -> squares c <= B) ->
  moved entries <= B * entered entries.
Proof.
  intros B entries positive columns. unfold moved, entered.
  induction entries as [ | [p c] entries rest ]; simpl; [ lia | ].
  assert (squares c <= B) by (apply (columns p c); left; reflexivity).
  assert (sum (map (fun e => fst e * fst e * squares (snd e)) entries)
          <= B * sum (map (fun e => fst e * fst e) entries)).
  { apply rest. intros q d among. apply (columns q d). right. exact among. }
  pose proof (squares_positive c). nia.
Qed.

(* After an erasure only the first rows of a column are left: a part of the same sum. *)
Lemma a_prefix_moves_less : forall v w, squares v <= squares (v ++ w).
Proof.
  intros v w. unfold squares. rewrite map_app.
  assert (split : forall a b, sum (a ++ b) = sum a + sum b).
  { intros a b. induction a as [ | x a rest ]; simpl; [ reflexivity | rewrite rest; lia ]. }
  rewrite split. pose proof (squares_positive w) as more. unfold squares in more. lia.
Qed.

(* With inequalities (0), (1) and (2) of the note: a period has length at most 2^38 units, which is 1. *)
Theorem a_period_has_length_one :
  forall entries k, (forall p c, In (p, c) entries -> squares c <= 2 ^ 32) ->
  entered entries <= 2 ^ 20 * k -> k <= 2 ^ 24 -> moved entries <= (2 ^ 38) * (2 ^ 38).
Proof.
  intros entries k columns weights used.
  assert (moved entries <= 2 ^ 32 * entered entries) by (apply columns_bound_the_period; [ lia | exact columns ]).
  lia.
Qed.

(* A mean enters with 409 and 921 of 1024 parts: inequality (0) with m = 1. *)
Lemma a_mean_fits : 409 * 409 + 921 * 921 <= 2 ^ 20.
Proof. lia. Qed.

(* Used weight never exceeds the allowance: a batch takes at most what is left of it. *)
Theorem used_stays_within_the_allowance :
  forall used allowed later batch, used <= allowed -> allowed <= later -> batch <= later - used ->
  used + batch <= later.
Proof. lia. Qed.

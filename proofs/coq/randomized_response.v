(* Randomized response over k + 1 answers (proofs/randomized_response.md, proofs/sign_flip.md). *)

From Coq Require Import Reals Lra.
Open Scope R_scope.

Section Response.
  Variables (epsilon : R) (k : R).
  Hypothesis level : 0 < epsilon.
  Hypothesis others : 1 <= k.

  Definition keep : R := exp epsilon / (exp epsilon + k).
  Definition other : R := / (exp epsilon + k).

  Lemma above_one : 1 < exp epsilon.
  Proof. rewrite <- exp_0. apply exp_increasing. exact level. Qed.

  Lemma it_is_a_distribution : keep + k * other = 1.
  Proof. pose proof above_one. unfold keep, other. field. lra. Qed.

  (* The largest ratio of the probabilities of one answer is e^epsilon, and it is attained. *)
  Theorem the_ratio_is_e_to_the_epsilon : keep = exp epsilon * other.
  Proof. reflexivity. Qed.

  Theorem no_ratio_is_larger :
    keep <= exp epsilon * keep /\ other <= exp epsilon * keep /\ other <= exp epsilon * other.
  Proof.
    pose proof above_one.
    assert (0 < other) by (unfold other; apply Rinv_0_lt_compat; lra).
    rewrite the_ratio_is_e_to_the_epsilon. set (e := exp epsilon) in *. set (o := other) in *.
    assert (o <= e * o) by nra. repeat split; nra.
  Qed.
End Response.

(* Counts of words: if the true answer has at most e^epsilon times the words of another, so have the probabilities. *)
Theorem counts_decide :
  forall e most least words : R, 0 < words -> most <= e * least -> most / words <= e * (least / words).
Proof.
  intros e most least words some fits. unfold Rdiv. rewrite <- Rmult_assoc.
  apply Rmult_le_compat_r; [ left; apply Rinv_0_lt_compat; exact some | exact fits ].
Qed.

"""Samplers and groups: each maps a step to a step, with the theorem that makes the new pair worst.

Everything but plain Poisson sampling rests on advanced joint convexity (Balle, Barthe, Gaboardi 2018, Thm. 2): with
a = 1 + q (a' - 1), H_a((1-q) U + q V, (1-q) U + q W) = q H_a'(V, (1-b) U + b W), b = a/a'. Where U, V, W are outputs on
data that differ by one replacement, the right side is at most q H_a'(N(s), N(0)), which is H_a of
((1-q) N(0) + q N(s), N(0)); as neighbours may be taken in either order, the symmetric pair with this profile dominates
every step, in any order of directions, and so composes (Zhu, Dong, Wang 2022, Thm. 10 and 11). The pair
((1-q) N(0) + q N(s), N(0)) itself need not: for replaced records the worst direction may change from step to step
(Lebeda, Regehr, Kamath, Steinke 2024).
"""

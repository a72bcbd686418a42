//! Small dense matrices in slices, in row-major order. Solvers use them where a tensor for each matrix would cost more than the arithmetic.

/// The factors of a square matrix: P A = L U, with partial pivoting (Golub and Van Loan, "Matrix computations", 2013, algorithm 3.4.1).
pub(crate) struct Lu {
    n: usize,
    factors: Vec<f64>,
    swaps: Vec<usize>,
}

impl Lu {
    /// Returns the factors of the matrix `[n, n]`, or `None` if a pivot is 0 or not finite.
    pub(crate) fn factor(mut a: Vec<f64>, n: usize) -> Option<Self> {
        let mut swaps = Vec::with_capacity(n);
        for k in 0..n {
            let mut pivot = k;
            for i in k + 1..n {
                if a[i * n + k].abs() > a[pivot * n + k].abs() {
                    pivot = i;
                }
            }
            let diagonal = a[pivot * n + k];
            if diagonal == 0.0 || !diagonal.is_finite() {
                return None;
            }
            swaps.push(pivot);
            if pivot != k {
                let (upper, lower) = a.split_at_mut(pivot * n);
                upper[k * n..(k + 1) * n].swap_with_slice(&mut lower[..n]);
            }
            let (upper, lower) = a.split_at_mut((k + 1) * n);
            let row = &upper[k * n..];
            for other in lower.chunks_exact_mut(n) {
                let factor = other[k] / diagonal;
                other[k] = factor;
                if factor != 0.0 {
                    other[k + 1..].iter_mut().zip(&row[k + 1..]).for_each(|(x, y)| *x -= factor * y);
                }
            }
        }
        Some(Lu { n, factors: a, swaps })
    }

    /// Replaces `b` by the solution x of A x = b.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        let n = self.n;
        for (k, &pivot) in self.swaps.iter().enumerate() {
            b.swap(k, pivot);
        }
        for i in 0..n {
            let (known, rest) = b.split_at_mut(i);
            rest[0] -= dot(&self.factors[i * n..i * n + i], known);
        }
        for i in (0..n).rev() {
            let (rest, known) = b.split_at_mut(i + 1);
            let row = &self.factors[i * n..(i + 1) * n];
            rest[i] = (rest[i] - dot(&row[i + 1..], known)) / row[i];
        }
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_solution_satisfies_the_equations() {
        // The first and the second column need an exchange of rows.
        let a = [0.0, 2.0, 1.0, 4.0, 4.0, -1.0, 2.0, 6.0, 3.0];
        let x = [1.0, -2.0, 0.5];
        let mut b: Vec<f64> = a.chunks(3).map(|row| dot(row, &x)).collect();
        Lu::factor(a.to_vec(), 3).unwrap().solve(&mut b);
        assert!(b.iter().zip(x).all(|(got, expected)| (got - expected).abs() < 1e-15), "{b:?}");
    }

    #[test]
    fn a_singular_matrix_has_no_factors() {
        assert!(Lu::factor(vec![1.0, 2.0, 2.0, 4.0], 2).is_none());
        assert!(Lu::factor(vec![f64::NAN], 1).is_none());
        assert!(Lu::factor(Vec::new(), 0).is_some());
    }
}

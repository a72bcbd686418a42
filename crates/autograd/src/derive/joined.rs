//! Terms of an adjoint that are recorded together instead of one by one.
//!
//! The gradient of an array that was read in parts is one concatenation of the parts' gradients, not a sum of as many arrays of
//! zeros with a part filled in; parts that begin at one place, and end at several, are added piece by piece. The gradient of a weight
//! that was used many times, Σ xᵢᵀ gᵢ, is one product over all rows, [x₁; x₂; …]ᵀ [g₁; g₂; …]: that is what a recurrent network needs,
//! whose every step uses the same weight for few rows.
//!
//! Terms wait until their array's turn comes, or until so many wait that keeping their operands would cost too much memory.

use std::collections::BTreeMap;
use std::mem::take;
use std::ops::Range;

use wengert_tensor::ops::TensorLike;
use wengert_tensor::plan::{Index, Op};
use wengert_tensor::{Float, Shape, Site, View};

use crate::rules::{self, Mode};
use crate::tape::Reverse;
use crate::{Error, Tape, Var};

/// Elements of the operands of a joined product, at most.
const LONGEST: usize = 1 << 24;

/// Slices that start at one place and are added piece by piece, at most: `n` of them have up to `n²` / 2 pieces.
const DEEPEST: usize = 16;

/// The derivative of `node` with respect to one of its inputs, applied to `g`.
#[derive(Clone, Copy)]
pub(super) struct Term {
    pub(super) node: Index,
    pub(super) input: usize,
    pub(super) g: Index,
}

/// The terms of one adjoint that wait.
#[derive(Default)]
pub(super) struct Waiting {
    /// Terms of slices along one dimension by where they start, each with its length, in ascending order of it. Those that start at
    /// different places do not overlap.
    slices: BTreeMap<usize, Vec<(usize, Term)>>,
    axis: usize,
    /// Terms of products with the array on the right.
    products: Vec<Term>,
    /// Elements of the products' operands.
    elements: usize,
}

/// Concatenations that were recorded, by their dimension and parts.
type Concatenations = BTreeMap<(usize, Vec<Index>), Index>;

/// What waits, by slot; and what was concatenated.
pub(super) struct Joined<'t, T: Float> {
    waiting: BTreeMap<usize, Waiting>,
    known: Concatenations,
    /// Those along dimension 0, by the parts in ascending order.
    rows: Concatenations,
    /// Reverse mode, for operations that have no rule for forward mode.
    reverse: Reverse<'t, T>,
}

impl<'t, T: Float> Joined<'t, T> {
    pub(super) fn new(reverse: Reverse<'t, T>) -> Self {
        Joined { waiting: BTreeMap::new(), known: Concatenations::new(), rows: Concatenations::new(), reverse }
    }

    /// The parts one after the other along `axis`, recorded once.
    fn cat(&mut self, axis: usize, parts: &[Var<'t, T>], at: Site) -> Result<Var<'t, T>, Error> {
        let key = (axis, parts.iter().map(|part| part.index).collect::<Vec<_>>());
        if let Some(&known) = self.known.get(&key) {
            return Ok(parts[0].tape.at(known));
        }
        let all = TensorLike::apply_cat(parts, axis, Site { operation: "cat", ..at })?;
        if axis == 0 {
            let mut ascending = key.1.clone();
            ascending.sort_unstable();
            self.rows.insert((axis, ascending), all.index);
        }
        self.known.insert(key, all.index);
        Ok(all)
    }

    /// The highest slot for which terms wait.
    pub(super) fn highest(&self) -> Option<usize> {
        self.waiting.last_key_value().map(|(&slot, _)| slot)
    }
}

/// Sorts terms; those of one key keep their order. The key is a pointer, since a sort is compiled anew for each closure.
fn sort(terms: &mut [Term], key: fn(&Term) -> Index) {
    terms.sort_by_key(key);
}

impl<'t, T: Float> Tape<T> {
    /// Keeps a term of the adjoint in `slot` to be joined with others. `false` if it must be recorded at once; the sums of terms that
    /// can wait no longer are added to `ready`.
    pub(super) fn postpone(
        &'t self,
        joined: &mut Joined<'t, T>,
        slot: usize,
        term: Term,
        ready: &mut Vec<Var<'t, T>>,
        at: Site,
    ) -> Result<bool, Error> {
        let record = self.record.borrow();
        let (op, operands) = (record.op(term.node), record.operands(term.node));
        match op {
            Op::View(number) => {
                let &View::Slice { axis, start, len: len @ 1.., step: 1 } = record.view(number) else {
                    return Ok(false);
                };
                drop(record);
                let waiting = joined.waiting.entry(slot).or_default();
                let longest = |group: &[(usize, Term)]| group.last().map_or(0, |&(len, _)| len);
                let mut before = waiting.slices.range(..start + len).rev().filter(|&(&first, _)| first != start);
                let overlaps = before.next().is_some_and(|(first, group)| first + longest(group) > start);
                let crowded = waiting.slices.get(&start).is_some_and(|group| group.len() >= DEEPEST);
                if !waiting.slices.is_empty() && (overlaps || crowded || axis != waiting.axis) {
                    let (slices, axis) = (take(&mut waiting.slices), waiting.axis);
                    ready.push(self.of_slices(joined, axis, slices, at)?);
                }
                let waiting = joined.waiting.entry(slot).or_default();
                waiting.axis = axis;
                let group = waiting.slices.entry(start).or_default();
                group.insert(group.partition_point(|&(other, _)| other <= len), (len, term));
                Ok(true)
            }
            Op::Matmul if term.input == 1 => {
                let (&[rows, k], &[_, n]) = (record.shape(operands[0]).sizes(), record.shape(operands[1]).sizes())
                else {
                    return Ok(false);
                };
                // Joining copies the operands; otherwise each product is written, and added to the others.
                let elements = rows * (k + n);
                if rows == 0 || elements > 2 * k * n {
                    return Ok(false);
                }
                drop(record);
                let waiting = joined.waiting.entry(slot).or_default();
                if waiting.elements + elements > LONGEST && !waiting.products.is_empty() {
                    let products = take(&mut waiting.products);
                    waiting.elements = 0;
                    ready.push(self.of_products(joined, products, at)?);
                }
                let waiting = joined.waiting.entry(slot).or_default();
                waiting.elements += elements;
                waiting.products.push(term);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The sums of all terms that wait for `slot`.
    pub(super) fn joined(
        &'t self,
        joined: &mut Joined<'t, T>,
        slot: usize,
        at: Site,
    ) -> Result<Vec<Var<'t, T>>, Error> {
        let mut sums = Vec::new();
        if let Some(Waiting { slices, axis, products, .. }) = joined.waiting.remove(&slot) {
            if !slices.is_empty() {
                sums.push(self.of_slices(joined, axis, slices, at)?);
            }
            if !products.is_empty() {
                sums.push(self.of_products(joined, products, at)?);
            }
        }
        Ok(sums)
    }

    /// The sum of terms of slices: their gradients one after the other, and zeros where no slice was.
    fn of_slices(
        &'t self,
        joined: &mut Joined<'t, T>,
        axis: usize,
        slices: BTreeMap<usize, Vec<(usize, Term)>>,
        at: Site,
    ) -> Result<Var<'t, T>, Error> {
        let Some((_, &[(_, first), ..])) = slices.first_key_value().map(|(start, group)| (start, &group[..])) else {
            unreachable!("one slice at least")
        };
        let deriving = self.derive();
        let (op, inputs) = deriving.on_behalf_of(first.node);
        if slices.values().map(Vec::len).sum::<usize>() == 1 {
            return self.alone(joined.reverse, first, op, &inputs, at);
        }
        let shape = self.at(inputs[0]).shape();
        let mut parts = Vec::with_capacity(slices.len() + 1);
        let mut end = 0;
        let zeros = |from: usize, to: usize| {
            let mut shape: Shape = shape.clone();
            shape[axis] = to - from;
            self.at(first.g).filled_at(&shape, T::ZERO, at)
        };
        for (&start, group) in &slices {
            if start > end {
                parts.push(zeros(end, start));
            }
            let mut from = 0;
            for position in 0..group.len() {
                let (to, _) = group[position];
                if to > from {
                    parts.push(self.of_piece(&group[position..], axis, from..to, at)?);
                    from = to;
                }
            }
            end = start + from;
        }
        if end < shape[axis] {
            parts.push(zeros(end, shape[axis]));
        }
        joined.cat(axis, &parts, at)
    }

    /// The sum of what terms of slices that start at one place have in a range from there on, which all of them have.
    fn of_piece(
        &'t self,
        terms: &[(usize, Term)],
        axis: usize,
        range: Range<usize>,
        at: Site,
    ) -> Result<Var<'t, T>, Error> {
        let mut sum = None;
        for &(len, Term { g, .. }) in terms {
            let mut piece = self.at(g);
            if range.len() < len {
                let view = View::Slice { axis, start: range.start, len: range.len(), step: 1 };
                piece = piece.apply_view(view, Site { operation: "slice", ..at })?;
            }
            sum = Some(rules::accumulate(sum, piece, at)?);
        }
        Ok(sum.unwrap_or_else(|| unreachable!("one term at least")))
    }

    /// The sum of terms of products: one product over the rows of all. If the gradients' rows were joined before, in that order.
    fn of_products(&'t self, joined: &mut Joined<'t, T>, mut terms: Vec<Term>, at: Site) -> Result<Var<'t, T>, Error> {
        let deriving = self.derive();
        let (op, mut inputs) = deriving.on_behalf_of(terms[0].node);
        if let [term] = terms[..] {
            return self.alone(joined.reverse, term, op, &inputs, at);
        }
        let mut parts: Vec<Index> = terms.iter().map(|term| term.g).collect();
        parts.sort_unstable();
        // As recorded, which is the order of the slices that the steps of a sequence read.
        sort(&mut terms, |term| term.node);
        if let Some(&before) = joined.rows.get(&(0, parts)) {
            // Parts and terms have the same gradients: each term goes to its part's place.
            let record = self.record.borrow();
            let mut order: Vec<Term> =
                record.operands(before).iter().enumerate().map(|(input, &g)| Term { node: before, input, g }).collect();
            sort(&mut terms, |term| term.g);
            sort(&mut order, |part| part.g);
            let ascending = terms.clone();
            order.iter().zip(ascending).for_each(|(part, term)| terms[part.input] = term);
        }
        let left: Vec<Var<'t, T>> = {
            let record = self.record.borrow();
            terms.iter().map(|term| self.at(record.operands(term.node)[0])).collect()
        };
        let right: Vec<Var<'t, T>> = terms.iter().map(|term| self.at(term.g)).collect();
        inputs[0] = joined.cat(0, &left, at)?.index;
        let g = joined.cat(0, &right, at)?.index;
        self.alone(joined.reverse, Term { g, ..terms[0] }, op, &inputs, at)
    }

    /// One term, with these inputs of its node.
    fn alone(
        &'t self,
        reverse: Reverse<'t, T>,
        term: Term,
        op: Op,
        inputs: &[Index],
        at: Site,
    ) -> Result<Var<'t, T>, Error> {
        let Term { node, input, g } = term;
        let derivative = rules::derivative(self, node, op, inputs, input, self.at(g), Mode::Vjp, reverse, at)?;
        Ok(derivative.unwrap_or_else(|| unreachable!("slices and products have derivatives")))
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::plan::Op;

    use crate::prelude::*;

    fn wave(shape: impl Into<Shape>, seed: f64) -> Tensor<f64> {
        let shape = shape.into();
        let count = shape.iter().product::<usize>();
        Tensor::from_vec((0..count).map(|n| (n as f64 * 0.7 + seed).sin()).collect(), shape)
    }

    fn count(tape: &Tape<f64>, is: impl Fn(Op) -> bool) -> usize {
        let record = tape.record.borrow();
        (0..record.len() as u32).filter(|&node| is(record.op(node))).count()
    }

    fn assert_close(got: &Tensor<f64>, want: &Tensor<f64>) {
        assert_eq!(got.shape(), want.shape());
        for (got, want) in got.iter().zip(want.iter()) {
            assert!((got - want).abs() < 1e-12, "{got} is not {want}");
        }
    }

    /// One product for the weight, and one for each step's input.
    #[test]
    fn a_weight_used_many_times_has_one_product() {
        for transposed in [false, true] {
            let tape = Tape::<f64>::new();
            let own = if transposed { wave([3, 4], 0.3).t().contiguous() } else { wave([3, 4], 0.3) };
            let (x, w) = (tape.var(&wave([10, 3], 0.1)), tape.var(&own));
            let weight = if transposed { w.t() } else { w };
            let step = |number: isize| x.narrow(0, 2 * number, 2).matmul(weight).sin().sum(..);
            let loss = (1..5).fold(step(0), |sum, number| sum + step(number));
            let [dx, dw] = loss.grad([x, w]);
            assert_eq!(count(&tape, |op| op == Op::Matmul), 5 + 5 + 1);
            let whole = x.matmul(weight).sin().sum(..).grad([x, w]);
            assert_close(&dx.value(), &whole[0].value());
            assert_close(&dw.value(), &whole[1].value());
            // And again: the joined gradient is differentiated itself.
            let again = (dw.square().sum(..) + dx.square().sum(..)).grad([x, w]);
            let expected = (whole[1].square().sum(..) + whole[0].square().sum(..)).grad([x, w]);
            assert_close(&again[0].value(), &expected[0].value());
            assert_close(&again[1].value(), &expected[1].value());
        }
    }

    /// The steps' gradients come in the order of the inputs' slices for these, and in reverse for the weight of the states.
    #[test]
    fn the_gradients_of_a_sequence_are_joined_once() {
        let last = crate::transforms::objective(|[x, u, h]| {
            (0..5).fold(h, |h, step| (x.narrow(0, 2 * step, 2) + h.matmul(u)).tanh()).sum(..)
        });
        let (x, u, h) = (wave([10, 4], 0.1), wave([4, 4], 0.2), wave([2, 4], 0.3));
        for weight_first in [false, true] {
            let tape = Tape::<f64>::new();
            let (first, second) = if weight_first { (&u, &x) } else { (&x, &u) };
            let [first, second] = [tape.var(first), tape.var(second)];
            let [x, u] = if weight_first { [second, first] } else { [first, second] };
            last([x, u, tape.constant(&h)]).grad([x, u]);
            // Of the gradients, and of the states.
            assert_eq!(count(&tape, |op| matches!(op, Op::Other(_))), 2);
        }
        crate::gradcheck(last, [&x, &u, &h]).unwrap();
    }

    /// Many rows and a small weight: joining would copy more than it saves.
    #[test]
    fn products_of_many_rows_stay_apart() {
        let tape = Tape::<f64>::new();
        let (x, w) = (tape.var(&wave([40, 2], 0.1)), tape.var(&wave([2, 2], 0.2)));
        let [_] = (x.matmul(w).matmul(w).matmul(w).sum(..)).grad([w]);
        assert_eq!(count(&tape, |op| op == Op::Matmul), 3 + 2 + 3);
    }

    /// The keys of a block are all up to its last one, so their gradients are sums of slices that start at one place.
    #[test]
    fn causal_attention_has_the_gradients_of_its_mask() {
        use wengert_tensor::ops::AttentionMask;
        let keep = Tensor::from_fn([200, 200], |at| at[1] <= at[0]);
        let gradients = |keep: Option<&Tensor<bool>>| {
            let tape = Tape::<f64>::new();
            let [q, k, v] = [0.1, 0.2, 0.3].map(|seed| tape.var(&wave([2, 1, 200, 3], seed)));
            let mask = keep.map_or(AttentionMask::Causal, AttentionMask::Keep);
            let loss = q.scaled_dot_product_attention(k, v, mask, None).square().sum(..);
            let first = loss.grad([q, k, v]);
            let again = first[1].square().sum(..).grad([q, k, v]);
            [first, again].map(|gradients| gradients.map(|gradient| gradient.value()))
        };
        let (got, want) = (gradients(None), gradients(Some(&keep)));
        for (got, want) in got.iter().flatten().zip(want.iter().flatten()) {
            assert_close(got, want);
        }
    }

    /// In order, with gaps, overlapping, along two dimensions, empty, and several elements apart.
    #[test]
    fn slices_are_joined_where_they_do_not_overlap() {
        let x = wave([3, 12], 0.5);
        let check = |slices: &[(isize, isize, isize, isize)], others: usize| {
            let tape = Tape::<f64>::new();
            let x = tape.var(&x);
            let mut loss = x.square().sum(..);
            for &(axis, start, end, step) in slices {
                loss += x.slice(axis, Some(start), Some(end), step).sin().sum(..);
            }
            let times = Tensor::from_fn(x.shape(), |at| {
                let has = |&&(axis, start, end, step): &&(isize, isize, isize, isize)| {
                    let i = at[axis as usize] as isize;
                    (start..end).contains(&i) && (i - start) % step == 0
                };
                slices.iter().filter(has).count() as f64
            });
            let expected = x.value() * 2.0 + x.value().cos() * times;
            let before = count(&tape, |op| matches!(op, Op::Other(_)));
            let [dx] = loss.grad([x]);
            assert_eq!(count(&tape, |op| matches!(op, Op::Other(_))) - before, others, "{slices:?}");
            assert_close(&dx.value(), &expected);
        };
        check(&[(1, 0, 4, 1), (1, 4, 8, 1), (1, 8, 12, 1)], 1);
        check(&[(1, 8, 12, 1), (1, 0, 4, 1), (1, 4, 8, 1)], 1);
        check(&[(1, 1, 3, 1), (1, 9, 11, 1), (1, 5, 6, 1)], 1);
        check(&[(1, 2, 5, 1)], 1);
        check(&[(1, 0, 7, 1), (1, 5, 12, 1)], 2);
        // Of those that start at one place, the pieces are added.
        check(&[(1, 0, 3, 1), (1, 0, 7, 1), (1, 0, 12, 1)], 1);
        check(&[(1, 2, 9, 1), (1, 0, 2, 1), (1, 2, 5, 1), (1, 2, 9, 1), (1, 10, 11, 1)], 1);
        check(&[(1, 2, 9, 1), (1, 2, 5, 1), (1, 0, 3, 1)], 2);
        check(&[(1, 0, 12, 1); 40], 3);
        check(&[(1, 0, 6, 1), (1, 6, 12, 1), (0, 0, 1, 1), (0, 1, 3, 1)], 2);
        check(&[(1, 0, 6, 1), (1, 3, 3, 1), (1, 6, 12, 1), (1, 0, 12, 2)], 3);
    }
}

//! Rewrites sums of many terms as fewer, larger operations. For example, the gradient of an array that is read many times has one term for
//! each reader.
//!
//! | sum | rewritten |
//! |---|---|
//! | of adjoints of slices; each term is 0 outside one slice | one or more concatenations of parts |
//! | of adjoints of slices that shift the same value | a sum of slices of the value, which is padded with zeros once |
//! | of products of a transposed and another matrix, or of a column and a row, Σ xᵢᵀ gᵢ | one or more products [x₁; x₂; …]ᵀ [g₁; g₂; …] |
//!
//! The first kind of sum is the gradient of a sequence that is read step by step. The second kind is the gradient of a sum of neighbours,
//! as in a finite difference. The third kind is the gradient of a weight by which every step multiplies few rows. Terms are reordered, so
//! the last bits of a result may differ.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::engine::plan::definition::{Concatenation, Definition, Id, ShapeId, ShapedValue, Value};
use crate::engine::plan::expression::{Expression, NodeIndex};
use crate::engine::plan::values::{NONE, Values};
use crate::thresholds::plan::{MAX_JOINED_PRODUCT, MAX_PARTS_PER_SLICE};
use crate::{Binary, Shape, View};

/// The adjoint of a slice along one dimension: the elements `start..end` of the dimension equal `x`, and all other elements are 0.
#[derive(Clone, Copy)]
struct SliceAdjoint {
    start: usize,
    end: usize,
    x: ShapedValue,
}

/// A value shifted along one dimension: element i is element i + `by` of `x`, or 0 if `x` has no such element.
#[derive(Clone, Copy)]
struct Shift {
    x: ShapedValue,
    by: isize,
}

/// The matrices x and g of a product xᵀ g. If g has one row, x may have the shape `[k, 1]` instead of `[1, k]`.
type Product = [ShapedValue; 2];

/// The terms of a sum, sorted by kind: adjoints of slices, products, transposed products, and others.
#[derive(Default)]
struct Sum {
    /// The adjoints of slices, grouped by the dimension of the slice and the shape of the adjoint.
    slices: Vec<((usize, ShapeId), Vec<SliceAdjoint>)>,
    products: Vec<Product>,
    /// The products xᵀ g that are transposed before they are added: Σ (xᵢᵀ gᵢ)ᵀ. If the model computes y = x Wᵀ from a weight W, and g is
    /// the gradient of y, these terms are the gradient of W.
    transposed: Vec<Product>,
    others: Vec<Id>,
}

/// Rewrites the sums that `roots` need as fewer, larger operations. Returns all values, with the rewritten sums.
pub(super) fn rewrite_sums(mut old: Values, expression: &Expression, roots: &[NodeIndex]) -> Values {
    let sums = OldValues::new(&old, expression, roots).sums();
    if sums.is_empty() {
        return old;
    }
    let mut rewriting = Rewriting::new(&mut old);
    for (id, &value) in old.list.iter().enumerate() {
        rewriting.new_ids[id] = match sums.get(&(id as Id)) {
            Some(sum) => rewriting.define_sum(sum, value.node),
            None => rewriting.define_copy(&old, value),
        };
    }
    rewriting.finish(&old)
}

/// The values before sums are rewritten, with properties that the rewriting needs.
struct OldValues<'a> {
    values: &'a Values,
    /// For each value, the number of times that other values and `roots` (the requested nodes) read it.
    reader_counts: Vec<u32>,
    /// For each value, true if it is the adjoint of a slice, or a sum of adjoints of slices. Such a value becomes a part of every sum that
    /// reads it, even if there are several. For example, two gradients with some equal terms become two concatenations.
    is_sum_of_slices: Vec<bool>,
}

impl<'a> OldValues<'a> {
    fn new(values: &'a Values, expression: &Expression, roots: &[NodeIndex]) -> Self {
        let reader_counts = values.count_readers(expression, roots);
        let mut old = OldValues { values, reader_counts, is_sum_of_slices: Vec::with_capacity(values.list.len()) };
        for id in 0..values.list.len() as Id {
            let is_sum_of_slices = |id: Id| old.is_sum_of_slices[id as usize];
            let own = match old.addends(id) {
                Some([x, y]) => is_sum_of_slices(x) && is_sum_of_slices(y),
                None => old.as_slice_adjoint(id).is_some(),
            };
            old.is_sum_of_slices.push(own);
        }
        old
    }

    /// Returns the sums in which several terms can be joined to one operation. The map's key is the value of the whole sum.
    fn sums(&self) -> FxHashMap<Id, Sum> {
        let mut sums = FxHashMap::default();
        let candidates = |id: Id| self.as_slice_adjoint(id).is_some() || self.as_product(id).is_some();
        if (0..self.reader_counts.len() as Id).filter(|&id| candidates(id)).nth(1).is_none() {
            return sums;
        }
        let mut inner = vec![false; self.reader_counts.len()];
        for id in (0..self.reader_counts.len()).rev() {
            if self.reader_counts[id] > 0 && !inner[id] && self.addends(id as Id).is_some() {
                let sum = self.collect_terms(id as Id, &mut inner);
                if sum.products.len() > 1 || sum.transposed.len() > 1 || sum.slices.iter().any(|(_, all)| all.len() > 1)
                {
                    sums.insert(id as Id, sum);
                }
            }
        }
        sums
    }

    /// If a value is an addition, and both operands have the shape of the value, returns the operands, which are terms of a sum. Returns
    /// `None` for all other values.
    fn addends(&self, id: Id) -> Option<[Id; 2]> {
        let Value { definition: Definition::Binary(Binary::Add, x, y), shape, .. } = self.values.list[id as usize]
        else {
            return None;
        };
        let fits = |id: Id| self.values.list[id as usize].shape == shape;
        (fits(x) && fits(y)).then_some([x, y])
    }

    /// Sorts the terms of the sum `root` by kind. Marks in `inner` each addition that only this sum reads, so that the addition is not
    /// treated as a sum of its own.
    fn collect_terms(&self, root: Id, inner: &mut [bool]) -> Sum {
        let mut sum = Sum::default();
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            let is_inner = id == root || self.reader_counts[id as usize] == 1 || self.is_sum_of_slices[id as usize];
            if let Some([x, y]) = self.addends(id).filter(|_| is_inner) {
                inner[id as usize] = self.reader_counts[id as usize] == 1;
                open.extend([y, x]);
            } else if let Some((along, slice)) = self.as_slice_adjoint(id) {
                match sum.slices.iter_mut().find(|(own, _)| *own == along) {
                    Some((_, slices)) => slices.push(slice),
                    None => sum.slices.push((along, vec![slice])),
                }
            } else if let Some(product) = self.as_product(id) {
                sum.products.push(product);
            } else if let Some(product) = self.transpose_operand(id).and_then(|x| self.as_product(x)) {
                sum.transposed.push(product);
            } else {
                sum.others.push(id);
            }
        }
        sum
    }

    /// Returns the definition of a value that is read exactly once. Returns `None` for a value with several readers, which is computed in
    /// any case.
    fn read_once(&self, id: Id) -> Option<Definition> {
        (self.reader_counts[id as usize] == 1).then_some(self.values.list[id as usize].definition)
    }

    /// If a value is the adjoint of a slice, returns the sliced dimension, the shape of the value, and the slice. Returns `None` for other
    /// values, and for a slice without elements or with a step other than 1.
    fn as_slice_adjoint(&self, id: Id) -> Option<((usize, ShapeId), SliceAdjoint)> {
        let Definition::Embed(view, x, whole) = self.values.list[id as usize].definition else { return None };
        match self.values.views[view] {
            View::Slice { axis, start, len: len @ 1.., step: 1 } => {
                Some(((axis, whole), SliceAdjoint { start, end: start + len, x }))
            }
            _ => None,
        }
    }

    /// If a value is the transpose xᵀ of a matrix and is read exactly once, returns x. Otherwise returns `None`.
    /// [`collect_terms`](Self::collect_terms) uses this to find products that are transposed before they are added.
    fn transpose_operand(&self, id: Id) -> Option<Id> {
        match self.read_once(id)? {
            Definition::View(view, _, x) if self.is_transpose(view) => Some(x),
            _ => None,
        }
    }

    fn is_transpose(&self, view: u32) -> bool {
        matches!(&self.values.views[view], View::Permute(order) if order[..] == [1, 0])
    }

    /// Returns x and g if a value is a product xᵀ g of two matrices and is read exactly once. Returns `None` if it is not. Also returns
    /// `None` if joining the rows of x and g with the rows of other products would copy more elements than it saves.
    fn as_product(&self, id: Id) -> Option<Product> {
        let Some(Definition::Product(left, right)) = self.read_once(id) else { return None };
        let sizes = |shape: u32| self.values.shapes[shape].sizes();
        let (&[k, rows], &[_, n]) = (sizes(left.1), sizes(right.1)) else { return None };
        let x = match self.values.list[left.0 as usize].definition {
            Definition::View(view, from, x) if self.is_transpose(view) => (x, from),
            _ if rows == 1 => left,
            _ => return None,
        };
        // x has the shape `[rows, k]`, and g has the shape `[rows, n]`. Joining the product with others copies x and g. Without joining,
        // the product's k · n elements are written to memory and read again for the sum.
        let copied = rows * (k + n);
        (0 < copied && copied <= 2 * k * n).then_some([x, right])
    }
}

/// The state of the rewriting: the new values that were defined so far, for the old values in ascending order.
pub(super) struct Rewriting {
    pub(super) values: Values,
    /// For each old value, the index of the new value.
    pub(super) new_ids: Vec<Id>,
    /// For each concatenation along the first dimension, the indices of its parts in the order of the concatenation. The key is the same
    /// list in ascending order.
    row_orders: FxHashMap<Vec<Id>, Vec<Id>>,
}

impl Rewriting {
    /// Returns the state before the first value is rewritten. Moves the lists of shapes, numbers and views from `old`.
    pub(super) fn new(old: &mut Values) -> Self {
        Rewriting { values: old.take_tables(), new_ids: vec![NONE; old.list.len()], row_orders: FxHashMap::default() }
    }

    /// Returns the new values, after all values of `old` were rewritten.
    pub(super) fn finish(mut self, old: &Values) -> Values {
        let new = |&id: &Id| if id == NONE { NONE } else { self.new_ids[id as usize] };
        self.values.ids_by_node = old.ids_by_node.iter().map(new).collect();
        self.values
    }

    /// Returns the rewritten value that replaces an operand of an old value. The operand's shape stays the same.
    fn operand(&self, (id, shape): ShapedValue) -> ShapedValue {
        (self.new_ids[id as usize], shape)
    }

    /// Defines a new value that has the definition of an old value, with the new operands.
    pub(super) fn define_copy(&mut self, old: &Values, Value { mut definition, shape, node }: Value) -> Id {
        definition.replace_operands(|id| self.new_ids[id as usize]);
        match definition {
            Definition::View(view, from, x) => {
                let (view, from) = (self.values.views[view].clone(), self.values.shapes[from].clone());
                let to = view.shape(&from);
                self.values.view(view, x, &from, &to, node)
            }
            Definition::Cat(number) => {
                let Concatenation { axis, parts } = &old.concatenations[number];
                let parts = parts.iter().map(|&part| self.operand(part)).collect();
                self.define_concatenation(*axis, parts, node)
            }
            definition => self.values.intern(definition, shape, node),
        }
    }

    /// Defines a concatenation along the dimension `axis`. If this is the first dimension, records the order of the parts, so that
    /// [`define_product`](Self::define_product) can use the same order.
    fn define_concatenation(&mut self, axis: usize, parts: Vec<ShapedValue>, node: NodeIndex) -> Id {
        if axis == 0 {
            let order: Vec<Id> = parts.iter().map(|&(id, _)| id).collect();
            self.row_orders.entry(sorted(order.clone())).or_insert(order);
        }
        self.values.concatenation(Concatenation { axis, parts }, node)
    }

    /// Defines the new value of a sum: first adds the unchanged terms in their order, and then the slices, concatenations and products that
    /// replace the other terms.
    fn define_sum(&mut self, sum: &Sum, node: NodeIndex) -> Id {
        let mut terms: Vec<Id> = sum.others.iter().map(|&term| self.new_ids[term as usize]).collect();
        for (along, slices) in &sum.slices {
            let operand = |slice: SliceAdjoint| SliceAdjoint { x: self.operand(slice.x), ..slice };
            let order = positions_by_key(&mut slices.iter().map(|slice| (slice.start, slice.end)));
            let slices: Vec<SliceAdjoint> = order.into_iter().map(|position| operand(slices[position])).collect();
            let slices = self.define_shifts(*along, slices, node, &mut terms);
            if !slices.is_empty() {
                self.define_slice_sum(*along, &slices, node, &mut terms);
            }
        }
        for (products, is_transposed) in [(&sum.products, false), (&sum.transposed, true)] {
            let mut rest = &products[..];
            while !rest.is_empty() {
                let mut elements = 0;
                let is_over = |product: &Product| {
                    elements += product.iter().map(|x| self.values.shapes[x.1].numel()).sum::<usize>();
                    elements > MAX_JOINED_PRODUCT
                };
                let count = rest.iter().position(is_over).unwrap_or(rest.len()).max(1);
                let joined =
                    rest[..count].iter().map(|&[x, g]| [self.define_rows(x, g, node), self.operand(g)]).collect();
                let product = self.define_product(joined, node);
                terms.push(if is_transposed { self.define_transpose(product, node).0 } else { product.0 });
                rest = &rest[count..];
            }
        }
        let add = |total, term| self.values.elementwise(Definition::Binary(Binary::Add, total, term), node);
        terms.into_iter().reduce(add).unwrap_or_else(|| unreachable!("a sum has terms"))
    }

    /// Returns the rewritten matrix x of a product xᵀ g. If g has one row and x has the shape `[k, 1]`, returns x in the shape `[1, k]`.
    fn define_rows(&mut self, x: ShapedValue, g: ShapedValue, node: NodeIndex) -> ShapedValue {
        let ((x, from), rows) = (self.operand(x), self.values.shapes[g.1][0]);
        if rows != 1 || self.values.shapes[from][0] == 1 {
            return (x, from);
        }
        let from = self.values.shapes[from].clone();
        let to: Shape = [1, from[0]].into();
        let row = self.values.view(View::Reshape(to.clone()), x, &from, &to, node);
        (row, self.values.intern_shape(&to))
    }

    fn define_transpose(&mut self, (x, from): ShapedValue, node: NodeIndex) -> ShapedValue {
        let from = self.values.shapes[from].clone();
        let to = [from[1], from[0]].into();
        let x = self.values.view(View::Permute([1, 0].into_iter().collect()), x, &from, &to, node);
        (x, self.values.intern_shape(&to))
    }

    /// Finds the adjoints among `slices` that shift the same value by different amounts. Pads this value with zeros where a shift reads
    /// beyond its ends, and adds one slice of the padded value to `terms` for each shift. Returns the other adjoints.
    fn define_shifts(
        &mut self,
        (axis, whole): (usize, ShapeId),
        slices: Vec<SliceAdjoint>,
        node: NodeIndex,
        terms: &mut Vec<Id>,
    ) -> Vec<SliceAdjoint> {
        let to = self.values.shapes[whole].clone();
        let shifts: Vec<Option<Shift>> = slices.iter().map(|slice| self.as_shift(*slice, axis, to[axis])).collect();
        // For each shifted value, the smallest and the largest shift.
        let mut ranges: FxHashMap<ShapedValue, [isize; 2]> = FxHashMap::default();
        for &Shift { x, by } in shifts.iter().flatten() {
            let [smallest, largest] = ranges.entry(x).or_insert([by; 2]);
            (*smallest, *largest) = (by.min(*smallest), by.max(*largest));
        }
        let mut rest = Vec::new();
        for (slice, shift) in slices.into_iter().zip(shifts) {
            let several =
                shift.map(|shift| (shift, ranges[&shift.x])).filter(|(_, [smallest, largest])| smallest < largest);
            let Some((Shift { x, by }, [smallest, largest])) = several else {
                rest.push(slice);
                continue;
            };
            let from = self.values.shapes[x.1].clone();
            let size = from[axis] as isize;
            let (before, after) = (isize::max(0, -smallest), isize::max(0, to[axis] as isize + largest - size));
            let padded = from.with_size(axis, (before + size + after) as usize);
            let view = View::Slice { axis, start: before as usize, len: size as usize, step: 1 };
            let zeros_around = self.values.embed(view, x, &padded, node);
            let view = View::Slice { axis, start: (before + by) as usize, len: to[axis], step: 1 };
            terms.push(self.values.view(view, zeros_around, &padded, &to, node));
        }
        rest
    }

    /// Returns the adjoint of a slice as a [`Shift`] along the dimension `axis`, which has `len` elements in the adjoint. Returns `None` if
    /// the adjoint lacks elements that the shift would have, or if more than half of its elements are zeros.
    fn as_shift(&self, SliceAdjoint { start, end, x }: SliceAdjoint, axis: usize, len: usize) -> Option<Shift> {
        let shapes = &self.values.shapes;
        let (x, first) = match self.values.list[x.0 as usize].definition {
            // If the slice is expanded afterwards, the shapes differ.
            Definition::View(view, from, whole) if self.values.views[view].shape(&shapes[from]) == shapes[x.1] => {
                match self.values.views[view] {
                    View::Slice { axis: other, start, step: 1, .. } if other == axis => ((whole, from), start),
                    _ => (x, 0),
                }
            }
            _ => (x, 0),
        };
        let size = self.values.shapes[x.1][axis] as isize;
        let by = first as isize - start as isize;
        let is_shift = start as isize == isize::max(0, -by) && end as isize == isize::min(len as isize, size - by);
        (is_shift && 2 * (end - start) >= len).then_some(Shift { x, by })
    }

    /// Defines the sum of the adjoints of `slices` as one or more concatenations, and adds the concatenations to `terms`. `slices` is
    /// sorted by start. Slices that overlap cut each other into parts. If a slice would have more than [`MAX_PARTS_PER_SLICE`] parts on
    /// average, the function splits `slices` in two halves, and defines a concatenation for each half.
    fn define_slice_sum(
        &mut self,
        along: (usize, ShapeId),
        slices: &[SliceAdjoint],
        node: NodeIndex,
        terms: &mut Vec<Id>,
    ) {
        let mut cuts: Vec<usize> = slices.iter().flat_map(|slice| [slice.start, slice.end]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let place = |cut: usize| cuts.partition_point(|&other| other < cut);
        let parts: usize = slices.iter().map(|slice| place(slice.end) - place(slice.start)).sum();
        if parts > MAX_PARTS_PER_SLICE * slices.len() {
            let (first, second) = slices.split_at(slices.len() / 2);
            self.define_slice_sum(along, first, node, terms);
            self.define_slice_sum(along, second, node, terms);
        } else {
            terms.push(self.define_cut_slices(along, slices, cuts, node));
        }
    }

    /// Defines the sum of the adjoints of `slices` as one concatenation. Its parts are the ranges between successive positions in `cuts`,
    /// and between these positions and the ends of the dimension. In each range, the result is the sum of the slices that cover it, or
    /// zeros if there are none. A single part needs no concatenation.
    fn define_cut_slices(
        &mut self,
        (axis, whole): (usize, ShapeId),
        slices: &[SliceAdjoint],
        mut cuts: Vec<usize>,
        node: NodeIndex,
    ) -> Id {
        let whole = self.values.shapes[whole].clone();
        let last = whole[axis];
        cuts.splice(..0, (cuts[0] > 0).then_some(0));
        cuts.extend((cuts[cuts.len() - 1] < last).then_some(last));
        let mut parts: Vec<ShapedValue> = Vec::with_capacity(cuts.len());
        for range in cuts.windows(2).map(|cuts| cuts[0]..cuts[1]) {
            let mut shape = whole.clone();
            shape[axis] = range.len();
            let mut total = None;
            for slice in slices.iter().filter(|slice| slice.start <= range.start && range.end <= slice.end) {
                let part = self.define_part(*slice, axis, range.clone(), &shape, node);
                let add = |total| self.values.elementwise(Definition::Binary(Binary::Add, total, part), node);
                total = Some(total.map_or(part, add));
            }
            let part = total.unwrap_or_else(|| self.values.number(0.0, node));
            parts.push((part, self.values.intern_shape(&shape)));
        }
        match parts[..] {
            [(part, _)] if self.values.list[part as usize].shape == self.values.intern_trimmed(&whole) => part,
            _ => self.define_concatenation(axis, parts, node),
        }
    }

    /// Defines a view of the elements `range`, along the dimension `axis`, of a slice's adjoint. `range` lies within the slice, so the view
    /// has elements of `slice.x`.
    fn define_part(
        &mut self,
        slice: SliceAdjoint,
        axis: usize,
        range: Range<usize>,
        to: &Shape,
        node: NodeIndex,
    ) -> Id {
        if range == (slice.start..slice.end) {
            return slice.x.0;
        }
        let from = self.values.shapes[slice.x.1].clone();
        let view = View::Slice { axis, start: range.start - slice.start, len: range.len(), step: 1 };
        self.values.view(view, slice.x.0, &from, to, node)
    }

    /// Defines the sum of products xᵀ g as one product of two concatenations: the rows of all x, and the rows of all g. If the plan already
    /// concatenates these x or these g, uses the order of that concatenation. Otherwise uses the order in which the operands were defined.
    /// For a sequence, this is the order of its steps.
    fn define_product(&mut self, products: Vec<Product>, node: NodeIndex) -> ShapedValue {
        let key = |&[(x, _), (y, _)]: &Product| (x.min(y) as usize, x.max(y) as usize);
        let order = positions_by_key(&mut products.iter().map(key));
        let mut products: Vec<Product> = order.into_iter().map(|position| products[position]).collect();
        for side in [1, 0] {
            let parts = products.iter().map(|product| product[side].0).collect();
            if let Some(order) = self.row_orders.get(&sorted(parts)) {
                reorder(&mut products, side, order);
                break;
            }
        }
        let [left, right] = [0, 1].map(|side| {
            let parts: Vec<ShapedValue> = products.iter().map(|product| product[side]).collect();
            if let [part] = parts[..] {
                return part;
            }
            let concatenation = Concatenation { axis: 0, parts };
            let shape = self.values.concatenated_shape(&concatenation);
            (self.define_concatenation(0, concatenation.parts, node), self.values.intern_shape(&shape))
        });
        let left = self.define_transpose(left, node);
        let shape = [left.1, right.1].map(|shape| self.values.shapes[shape].clone());
        (self.values.product(left, right, node), self.values.intern_shape(&[shape[0][0], shape[1][1]]))
    }
}

/// Sorts products xᵀ g. Afterwards, the operands with index `side` have the order of the ids in `order`. `side` is 0 for x and 1 for g.
fn reorder(products: &mut [Product], side: usize, order: &[Id]) {
    let before = products.to_vec();
    let sources = positions_by_key(&mut before.iter().map(|product| (product[side].0 as usize, 0)));
    let targets = positions_by_key(&mut order.iter().map(|&id| (id as usize, 0)));
    targets.into_iter().zip(sources).for_each(|(target, source)| products[target] = before[source]);
}

/// Returns the positions of `keys` in ascending order of the keys. Positions of equal keys keep their order. All sorts by a key share this
/// function, because the standard library's sort is compiled again for each item type and each key.
fn positions_by_key(keys: &mut dyn Iterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut keys: Vec<(usize, usize, usize)> =
        keys.enumerate().map(|(position, (first, second))| (first, second, position)).collect();
    keys.sort_unstable();
    keys.into_iter().map(|(.., position)| position).collect()
}

fn sorted(mut ids: Vec<Id>) -> Vec<Id> {
    ids.sort_unstable();
    ids
}

//! Shapes, equations and views, compared with plain definitions.

use std::collections::BTreeMap;

use wengert::prelude::*;
use wengert::tensor::broadcast;

/// The largest number of elements for which the plain definition is computed.
const MOST: usize = 1 << 12;

/// The bytes of an input as small numbers. After the last byte all numbers are 0.
struct Bytes<'d>(std::slice::Iter<'d, u8>);

impl<'d> Bytes<'d> {
    fn new(data: &'d [u8]) -> Self {
        Bytes(data.iter())
    }

    /// Returns a number below `end`, which is at least 1.
    fn below(&mut self, end: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % end
    }

    fn is_empty(&self) -> bool {
        self.0.len() == 0
    }
}

/// Compares the rule with its definition: sizes are aligned at the right, and must be equal or 1.
pub fn broadcasting(data: &[u8]) {
    const SIZES: [usize; 8] = [0, 1, 1, 2, 3, 7, 1 << 40, usize::MAX];
    let mut bytes = Bytes::new(data);
    let count = bytes.below(5);
    let lists: Vec<Vec<usize>> = (0..count)
        .map(|_| {
            let rank = bytes.below(6);
            (0..rank).map(|_| SIZES[bytes.below(SIZES.len())]).collect()
        })
        .collect();
    let shapes: Vec<Shape> = lists.iter().map(|sizes| Shape::from(&sizes[..])).collect();
    let joined = broadcast::join(&shapes.iter().collect::<Vec<_>>());
    let rank = lists.iter().map(Vec::len).max().unwrap_or(0);
    let expected: Option<Vec<usize>> = (0..rank)
        .map(|axis| {
            let sizes = lists.iter().filter_map(|list| Some(list[(axis + list.len()).checked_sub(rank)?]));
            let mut different: Vec<usize> = sizes.filter(|&size| size != 1).collect();
            different.dedup();
            match different[..] {
                [] => Some(1),
                [size] => Some(size),
                _ => None,
            }
        })
        .collect();
    match (joined, expected) {
        (Ok(joined), Some(expected)) => assert_eq!(joined.sizes(), expected, "{lists:?}"),
        (Err(_), None) => {}
        (joined, expected) => panic!("{lists:?}: {joined:?}, expected {expected:?}"),
    }
    // Operations return an error for a shape that memory cannot hold.
    if let [a, b, ..] = &shapes[..] {
        let expand = |shape: &Shape| Tensor::<f32>::scalar(1.0).try_expand(shape);
        if let (Ok(a), Ok(b)) = (expand(a), expand(b)) {
            let _ = a.try_add(&b);
        }
    }
}

/// Compares an equation with nested loops over all labels. The bytes after the first zero are the shapes. An equation
/// with an ellipsis or without `->` is computed but not compared.
pub fn einsum(data: &[u8]) {
    let mut parts = data.splitn(2, |&byte| byte == 0);
    let Ok(equation) = std::str::from_utf8(parts.next().unwrap_or_default()) else { return };
    let mut bytes = Bytes::new(parts.next().unwrap_or_default());
    let operands: Vec<Tensor<f64>> = (0..1 + bytes.below(3))
        .map(|_| {
            let sizes: Vec<usize> = (0..bytes.below(5)).map(|_| [2, 1, 3, 0][bytes.below(4)]).collect();
            let mut next = 0;
            Tensor::from_fn(&sizes[..], |_| {
                next = (next + 5) % 7;
                next as f64 - 3.0
            })
        })
        .collect();
    let Ok(found) = try_einsum(equation, &operands) else { return };
    let plain: String = equation.chars().filter(|c| *c != ' ').collect();
    let Some((inputs, output)) = plain.split_once("->").filter(|_| !plain.contains('.')) else { return };
    let labels: Vec<Vec<char>> = inputs.split(',').map(|input| input.chars().collect()).collect();
    let mut sizes: BTreeMap<char, usize> = BTreeMap::new();
    for (label, &size) in labels.iter().zip(&operands).flat_map(|(input, x)| input.iter().zip(x.shape().iter())) {
        let known = sizes.entry(*label).or_insert(size);
        if *known == 1 {
            *known = size;
        }
    }
    let names: Vec<char> = sizes.keys().copied().collect();
    let total: usize = sizes.values().product();
    if total > MOST {
        return;
    }
    let mut expected: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
    for number in 0..total {
        let mut rest = number;
        let mut index = BTreeMap::new();
        for name in &names {
            index.insert(*name, rest % sizes[name]);
            rest /= sizes[name];
        }
        let product = labels.iter().zip(&operands).map(|(input, x)| {
            let sized = input.iter().zip(x.shape().iter());
            let place: Vec<usize> = sized.map(|(label, &size)| if size == 1 { 0 } else { index[label] }).collect();
            x.get(&place).expect("the place is in the tensor")
        });
        let at = output.chars().map(|label| index[&label]).collect();
        *expected.entry(at).or_default() += product.product::<f64>();
    }
    let shape: Vec<usize> = output.chars().map(|label| sizes[&label]).collect();
    assert_eq!(found.shape().sizes(), shape, "{equation}");
    for (at, value) in expected {
        assert_eq!(found.get(&at), Some(value), "{equation} at {at:?}");
    }
}

/// A tensor as a shape and its elements in order.
struct Plain {
    shape: Vec<usize>,
    elements: Vec<i64>,
}

impl Plain {
    /// Returns the tensor of `shape` whose element at each index is the element of `self` at the index that `from` returns for it.
    fn gather(&self, shape: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Plain {
        let count = shape.iter().product();
        let element = |number: usize| {
            let (mut rest, mut index) = (number, vec![0; shape.len()]);
            for (place, &size) in index.iter_mut().zip(&shape).rev() {
                *place = rest % size;
                rest /= size;
            }
            let place = from(&index).iter().zip(&self.shape).fold(0, |place, (&at, &size)| place * size + at);
            self.elements[place]
        };
        let elements = (0..count).map(element).collect();
        Plain { shape, elements }
    }
}

/// Compares a chain of views with copies of the elements.
pub fn views(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let shape: Vec<usize> = (0..bytes.below(5)).map(|_| [2, 1, 3, 5, 0][bytes.below(5)]).collect();
    let count = shape.iter().product::<usize>();
    let mut tensor = Tensor::<i64>::arange(count).try_reshape(&Shape::from(&shape[..])).expect("the sizes fit");
    let mut plain = Plain { shape, elements: (0..count as i64).collect() };
    while !bytes.is_empty() {
        let (kind, rank) = (bytes.below(9), plain.shape.len());
        if kind != 0 && rank == 0 {
            continue;
        }
        let axis = bytes.below(rank.max(1));
        // A dimension may also be counted from the end.
        let dim = if bytes.below(2) == 0 { axis as isize } else { axis as isize - rank as isize };
        let size = plain.shape.get(axis).copied().unwrap_or(0);
        let (first, second) = (bytes.below(size + 1), bytes.below(size + 1));
        let (start, end) = (first.min(second), first.max(second));
        let viewed = match kind {
            0 if rank < 8 => (tensor.try_unsqueeze(axis as isize), unsqueezed(&plain, axis)),
            1 => (tensor.try_narrow(dim, start, end - start), narrowed(&plain, axis, start, end, 1)),
            2 => {
                let step = 1 + bytes.below(4);
                (tensor.try_slice(dim, (start..end, step)), narrowed(&plain, axis, start, end, step))
            }
            3 if size > 0 => (tensor.try_select(dim, first % size), selected(&plain, axis, first % size)),
            4 => (tensor.try_flip(dim), flipped(&plain, axis)),
            5 => {
                let other = bytes.below(rank);
                (tensor.try_transpose(axis as isize, other as isize), transposed(&plain, axis, other))
            }
            6 if size == 1 && plain.elements.len() < MOST => {
                let mut sizes = plain.shape.clone();
                sizes[axis] = bytes.below(5);
                let expanded = tensor.try_expand(&Shape::from(&sizes[..]));
                (expanded, plain.gather(sizes, |at| replaced(at, axis, 0)))
            }
            7 if size > 0 && rank < 8 && plain.elements.len() < MOST => {
                let (window, step) = (1 + bytes.below(size), 1 + bytes.below(3));
                let mut sizes = plain.shape.clone();
                sizes[axis] = (size - window) / step + 1;
                sizes.push(window);
                let from = |at: &[usize]| replaced(&at[..rank], axis, at[axis] * step + at[rank]);
                (tensor.try_unfold(dim, window, step), plain.gather(sizes, from))
            }
            _ => {
                // Any other arguments are an error or a value.
                let (a, b, step) = (bytes.below(256) as isize - 128, bytes.below(256) as isize - 128, bytes.below(5));
                let _ = (tensor.try_narrow(a, b, a), tensor.try_select(a, b), tensor.try_flip(a));
                let _ = (tensor.try_slice(a, (b.., step)), tensor.try_transpose(a, b));
                let _ = (tensor.try_unfold(a, step, step), tensor.try_unsqueeze(b));
                continue;
            }
        };
        tensor = viewed.0.unwrap_or_else(|error| panic!("kind {kind} on {:?}: {error}", plain.shape));
        plain = viewed.1;
        assert_eq!(tensor.shape().sizes(), plain.shape, "kind {kind}");
        assert_eq!(tensor.to_vec(), plain.elements, "kind {kind}");
    }
    // A contiguous copy has the same elements, and the sum of the tensor and itself has twice the elements.
    assert_eq!(tensor.contiguous().to_vec(), plain.elements);
    assert!(tensor.try_add(&tensor).is_ok_and(|sum| sum.iter().zip(&plain.elements).all(|(sum, x)| sum == 2 * x)));
}

/// Returns the index with another value in one dimension.
fn replaced(index: &[usize], axis: usize, value: usize) -> Vec<usize> {
    let mut index = index.to_vec();
    index[axis] = value;
    index
}

fn unsqueezed(plain: &Plain, axis: usize) -> Plain {
    let mut shape = plain.shape.clone();
    shape.insert(axis, 1);
    Plain { shape, elements: plain.elements.clone() }
}

fn narrowed(plain: &Plain, axis: usize, start: usize, end: usize, step: usize) -> Plain {
    let shape = replaced(&plain.shape, axis, (end - start).div_ceil(step));
    plain.gather(shape, |at| replaced(at, axis, start + at[axis] * step))
}

fn selected(plain: &Plain, axis: usize, place: usize) -> Plain {
    let mut shape = plain.shape.clone();
    shape.remove(axis);
    plain.gather(shape, |at| {
        let mut index = at.to_vec();
        index.insert(axis, place);
        index
    })
}

fn flipped(plain: &Plain, axis: usize) -> Plain {
    let size = plain.shape[axis];
    plain.gather(plain.shape.clone(), |at| replaced(at, axis, size - 1 - at[axis]))
}

fn transposed(plain: &Plain, axis: usize, other: usize) -> Plain {
    let mut shape = plain.shape.clone();
    shape.swap(axis, other);
    plain.gather(shape, |at| {
        let mut index = at.to_vec();
        index.swap(axis, other);
        index
    })
}

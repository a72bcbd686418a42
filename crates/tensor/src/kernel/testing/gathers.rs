//! Tests gathers, scatter-adds and embeddings over every layout against the oracle (simple code for single elements).

use crate::kernel::gather;
use crate::kernel::testing::layouts::{Recipe, Sample, generator};
use crate::kernel::testing::numbers::{Oracle, combine};
use crate::kernel::testing::oracle::{elements, nth, update};
use crate::kernel::testing::support::{Case, assert_bits, check_cases, recipe_for, site};
use crate::ops::TensorLike;
use crate::ops::index::positions::slice_positions;
use crate::prelude::*;
use crate::{Layout, Reduction, Shape, Tensor, View};

fn gathers<T: Oracle>(shape: &Shape, target: &Shape, recipes: [&Recipe; 3], seed: u64) {
    let rng = &mut generator(seed);
    let x = recipes[0].tensor(shape, || T::any(rng));
    let target = if shape.numel() == 0 { &Shape::from([0]) } else { target };
    let positions = recipes[1].tensor(target, || (u8::any(rng) as usize * 7 % shape.numel().max(1)) as i64);
    let places = elements(positions.source());
    let taken: Vec<T> = places.iter().map(|&place| nth(x.source(), place as usize)).collect();
    assert_bits(&x.apply_take(&positions, site()).unwrap(), &taken, "take");

    let g = recipes[2].tensor(target, || T::any(rng));
    let mut expected = vec![T::ZERO; shape.numel()];
    for (&place, g) in places.iter().zip(elements(g.source())) {
        expected[place as usize] = combine(Reduction::Sum, expected[place as usize], g);
    }
    assert_bits(&g.apply_scatter_add(&positions, shape, site()).unwrap(), &expected, "put");
}

/// Tests that operations that move whole slices by an index give the same result as moving each element separately.
fn rows<T: Oracle>(shape: &Shape, target: &Shape, recipes: [&Recipe; 3], seed: u64) {
    let rng = &mut generator(seed);
    let x = recipes[0].tensor(shape, || T::any(rng));
    for axis in 0..shape.rank() {
        let size = shape[axis];
        let target = if size == 0 { Shape::from([0]) } else { Shape::from(&target[..target.rank().min(2)]) };
        let index = recipes[1].tensor(&target, || (u8::any(rng) as usize * 7 % size.max(1)) as i64);
        let positions = slice_positions(shape, axis, &elements(index.source()), site()).unwrap();
        let taken = x.apply_index_select(axis, &index, site()).unwrap();
        let result = shape.replaced(axis..axis + 1, &target);
        assert_eq!(taken.shape(), &result);
        assert_bits(&taken, &elements(x.apply_take(&positions, site()).unwrap().source()), "index_select");

        let g = recipe_for(&result, recipes[2]).tensor(&result, || T::any(rng));
        let added = Tensor::apply_index_add(&[(&g, &index)], axis, size, site()).unwrap();
        assert_eq!(added.shape(), shape);
        let flat = g.reshape(positions.shape());
        assert_bits(
            &added,
            &elements(flat.apply_scatter_add(&positions, shape, site()).unwrap().source()),
            "index_add",
        );
        // The sum has two terms. The second term has only the first slice of `x`, and is added after the first term.
        if size == 0 {
            continue;
        }
        let (slice, number) = (x.narrow(axis as isize, 0, 1), Tensor::from([0i64]));
        let both = Tensor::apply_index_add(&[(&g, &index), (&slice, &number)], axis, size, site()).unwrap();
        let mut expected = elements(added.source());
        let window = Layout::contiguous(shape.clone()).slice(axis, 0, 1, 1);
        update(&mut expected, &window, slice.source(), |place, x| combine(Reduction::Sum, place, x));
        assert_bits(&both, &expected, "index_add of two terms");
    }
}

#[test]
fn rows_of_large_tensors_have_the_same_bits_on_any_number_of_threads() {
    let rng = &mut generator(5);
    let threads = crate::num_threads();
    // The first case has many columns, which are divided among the threads. The second case has few columns, so that the rows are divided.
    // In the third and fourth cases, the dimension before the indexed one has several elements. The last case has one column.
    for (shape, axis, count) in
        [([1, 40, 200], 1, 700), ([1, 3000, 7], 1, 11_000), ([90, 9, 8], 1, 200), ([300, 50, 1], 1, 500)]
    {
        let shape = Shape::from(shape);
        let index = Tensor::from_fn([count], |_| (u8::any(rng) as usize * 13 % shape[axis]) as i64);
        let x = Tensor::from_fn(&shape, |_| f32::any(rng));
        let g = Tensor::from_fn(shape.replaced(axis..axis + 1, &[count]).sizes(), |_| f32::any(rng));
        let positions = slice_positions(&shape, axis, &index.to_vec(), site()).unwrap();
        let taken = elements(x.apply_take(&positions, site()).unwrap().source());
        let added = elements(g.apply_scatter_add(&positions, &shape, site()).unwrap().source());
        for threads in [1, 2, 3, 8] {
            crate::set_num_threads(threads);
            assert_bits(&x.apply_index_select(axis, &index, site()).unwrap(), &taken, threads);
            assert_bits(&Tensor::apply_index_add(&[(&g, &index)], axis, shape[axis], site()).unwrap(), &added, threads);
        }
    }
    crate::set_num_threads(threads);
}

fn embeds<T: Oracle>(shape: &Shape, recipe: &Recipe, seed: u64) {
    let rng = &mut generator(seed);
    let mut views = vec![View::Flip((0..shape.rank()).collect()), View::Permute((0..shape.rank()).rev().collect())];
    views.push(View::Reshape(Shape::from([shape.numel()])));
    let wider: Shape = [2].into_iter().chain(shape.iter().map(|&size| if size == 1 { 3 } else { size })).collect();
    views.push(View::Expand(wider));
    for axis in 0..shape.rank() {
        let size = shape[axis];
        views.push(View::Slice { axis, start: size / 3, len: (size - size / 3).div_ceil(2), step: 2 });
        views.push(View::Slice { axis, start: size / 3, len: size - size / 3, step: 1 });
        views.push(View::Slice { axis, start: size / 2, len: size.min(1), step: 1 });
        views.push(View::Unfold { axis, size: size.min(3), step: 2 });
        views.push(View::Unfold { axis, size: size.min(2), step: 1 });
        if axis > 0 {
            views.push(View::Diagonal { offset: 1, first: axis, second: axis - 1 });
        }
    }
    for view in views {
        let x = recipe_for(&view.shape(shape), recipe).tensor(&view.shape(shape), || T::any(rng));
        let window = view.apply(&Layout::contiguous(shape.clone())).unwrap();
        let shared = view.may_repeat();
        let mut expected = vec![T::ZERO; shape.numel()];
        let landed = |place, x| if shared { combine(Reduction::Sum, place, x) } else { x };
        update(&mut expected, &window, x.source(), landed);
        assert_bits(&x.apply_embed(view.clone(), shape, site()).unwrap(), &expected, &view);
        if let View::Slice { axis, start, step: 1, .. } = view {
            // `embed_slice` writes all elements, so it must replace the ones.
            let mut got = vec![T::ONE; shape.numel()];
            gather::embed_slice(x.source(), (axis, start, shape[axis]), &mut got);
            assert_bits(&Tensor::from_vec(got, shape), &expected, &view);
        }
        // With `true` as its third argument, `embed` adds to the elements that `got` already has.
        let mut got = expected.clone();
        gather::embed(x.source(), &window, true, &mut got);
        update(&mut expected, &window, x.source(), |place, x| combine(Reduction::Sum, place, x));
        assert_bits(&Tensor::from(got), &expected, view);
    }
}

#[test]
fn a_slice_of_huge_dimensions_without_elements_is_embedded() {
    let shape = Shape::from([0, 1 << 40, 1 << 40]);
    let x = Tensor::<f32>::zeros(&shape);
    let slice = View::Slice { axis: 1, start: 0, len: shape[1], step: 1 };
    assert_eq!(x.apply_embed(slice, &shape, site()).unwrap().shape(), &shape);
}

#[test]
fn gathers_equal_the_oracle() {
    check_cases(&|Case { shape, other, recipes, seed, .. }| {
        for check in [gathers::<f32>, gathers::<i64>, gathers::<bool>, rows::<f32>, rows::<u8>] {
            check(shape, other, recipes.each_ref(), *seed);
        }
        embeds::<f64>(shape, &recipes[0], *seed);
        embeds::<u8>(shape, &recipes[0], *seed);
    });
}

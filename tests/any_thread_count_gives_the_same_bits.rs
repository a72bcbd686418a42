//! The order of additions does not depend on the number of threads: any number of threads gives the same bits.

use wengert::tensor::ops::{ConvOptions, PoolOptions};
use wengert::tensor::prelude::*;
use wengert::tensor::set_num_threads;
use wengert_tests::alone;

/// Returns tensors in eight layouts, whose sums are rounded, so that the order of additions changes their bits.
fn layouts() -> Vec<Tensor<f32>> {
    let x = Tensor::from_fn([301, 517], |index| ((index[0] * 7919 + index[1] * 104_729) % 10_007) as f32 / 997.0 - 5.0);
    vec![
        x.t(),
        x.flip([0, 1]),
        x.slice(0, (1.., 2)),
        x.slice(1, (.., 3)),
        x.select(1, 3).expand([400, 301]),
        x.reshape([-1]),
        x.narrow(0, 0, 280).reshape([7, 40, 517]).permute([2, 0, 1]),
        x,
    ]
}

fn bits(x: &Tensor<f32>) -> Vec<u32> {
    x.iter().map(f32::to_bits).collect()
}

fn compare_numbers_of_threads(compute: impl Fn() -> Vec<Tensor<f32>> + Sync) {
    let _alone = alone();
    let on = |threads: usize| {
        set_num_threads(threads);
        compute().iter().map(bits).collect::<Vec<_>>()
    };
    let alone = on(1);
    assert!(alone.iter().all(|result| !result.is_empty()));
    for threads in [2, 7] {
        let together = on(threads);
        let equal_results = alone.iter().zip(&together).map(|(x, y)| x == y).collect::<Vec<_>>();
        assert!(equal_results.iter().all(|&is_equal| is_equal), "{threads} threads: {equal_results:?}");
    }
}

#[test]
fn maps() {
    let layouts = layouts();
    compare_numbers_of_threads(|| {
        let row = |x: &Tensor<f32>| Tensor::<f32>::linspace(-1.0, 1.0, x.shape()[x.rank() - 1]);
        let computed = layouts.iter().flat_map(|x| {
            let mask = x.gt(0.0);
            let mut written = x.contiguous();
            written.mul_(row(x));
            [x.exp(), x + &row(x), where_(&mask, x, row(x)), mask.cast(), written]
        });
        computed.collect()
    });
}

#[test]
fn reductions() {
    let layouts = layouts();
    compare_numbers_of_threads(|| {
        let computed = layouts
            .iter()
            .flat_map(|x| [x.sum(..), x.sum(0), x.sum_keepdim(-1), x.mean_keepdim(0), x.amax(-1), x.amin(..)]);
        computed.collect()
    });
}

#[test]
fn products() {
    let layouts = layouts();
    let (x, transposed, batch) = (&layouts[7], &layouts[0], &layouts[6]);
    compare_numbers_of_threads(|| {
        vec![
            x.matmul(transposed),
            transposed.matmul(x),
            x.flip(0).matmul(transposed.narrow(1, 0, 65)),
            batch.matmul(batch.transpose(1, 2)),
            x.matmul(transposed.select(1, 0)),
        ]
    });
}

#[test]
fn long_lines_in_order() {
    let x = Tensor::from_fn([100_003], |index| ((index[0] * 7919) % 10_007) as f32);
    compare_numbers_of_threads(|| {
        let (sorted, places) = x.sort(0, false);
        vec![sorted, places.cast(), x.reshape([-1]).argsort(0, true).cast()]
    });
}

#[test]
fn convolutions_and_poolings() {
    let images = layouts()[7].narrow(0, 0, 300).narrow(1, 0, 512).reshape([30, 5, 32, 32]);
    let weight = layouts()[7].narrow(0, 0, 9).narrow(1, 0, 50).reshape([10, 5, 3, 3]) * 0.1;
    compare_numbers_of_threads(|| {
        let maps = images.conv2d(&weight, None, &ConvOptions::default().padding(1));
        vec![maps.max_pool2d(2, &PoolOptions::default()), maps.softmax(-1), maps.gelu(), maps]
    });
}

#[test]
fn another_order_of_additions_gives_other_bits() {
    // This is a negative control: the same elements, summed from the other end, round differently.
    let x = &layouts()[5];
    let (forwards, backwards) = (x.iter().sum::<f32>(), x.flip(0).iter().sum::<f32>());
    assert_ne!(forwards.to_bits(), backwards.to_bits());
}

//! Code that the benchmarks share. Plain loops measure the limits of the machine in the same run, and operations are compared with these
//! limits.

use std::hint::black_box;
use std::time::{Duration, Instant};

use wengert::tensor::num_threads;

/// Returns the shortest of several runs of `work`, in seconds. The shortest run has the least disturbance.
pub fn shortest(mut work: impl FnMut()) -> f64 {
    work();
    let end = Instant::now() + Duration::from_millis(300);
    let mut least = f64::INFINITY;
    let mut runs = 0;
    while runs < 5 || Instant::now() < end {
        let start = Instant::now();
        work();
        least = least.min(start.elapsed().as_secs_f64());
        runs += 1;
    }
    least
}

/// Returns the seconds in which plain loops on all threads read `inputs` arrays of `len` elements, and write one array if `writes` is true.
/// An operation on operands of this size causes the same memory traffic. With `writes`, the loops copy one array or add two; `inputs` is 1
/// or 2. Without `writes`, they sum each array.
pub fn traffic(len: usize, inputs: usize, writes: bool) -> f64 {
    // The arrays are not filled with zeros, because the system would map zeros to a single page.
    let data: Vec<Vec<f32>> = (0..inputs).map(|k| vec![1.0 + k as f32; len]).collect();
    let mut out = vec![1f32; if writes { len } else { 0 }];
    let part = len.div_ceil(num_threads());
    shortest(|| {
        std::thread::scope(|scope| {
            let mut rest = &mut out[..];
            for start in (0..len).step_by(part) {
                let end = (start + part).min(len);
                let (now, later) = rest.split_at_mut(if writes { end - start } else { 0 });
                rest = later;
                let data = &data;
                scope.spawn(move || {
                    let slices: Vec<&[f32]> = data.iter().map(|array| &array[start..end]).collect();
                    match (&slices[..], writes) {
                        ([x], true) => now.copy_from_slice(x),
                        ([x, y], true) => now.iter_mut().zip(*x).zip(*y).for_each(|((out, x), y)| *out = x + y),
                        (arrays, _) => arrays.iter().for_each(|array| {
                            black_box(total(array));
                        }),
                    }
                });
            }
        });
    })
}

/// Returns the sum of `x` in 64 independent chains, so that only memory limits the speed.
fn total(x: &[f32]) -> f32 {
    let (chunks, rest) = x.as_chunks::<64>();
    let mut totals = [0f32; 64];
    for chunk in chunks {
        for k in 0..64 {
            totals[k] += chunk[k];
        }
    }
    totals.iter().chain(rest).sum()
}

/// Prints the bandwidth of `work` as a share of the bandwidth of plain loops.
pub fn against_traffic(name: &str, len: usize, inputs: usize, writes: bool, work: impl FnMut()) {
    let (limit, ours) = (traffic(len, inputs, writes), shortest(work));
    let bytes = 4 * len * (inputs + usize::from(writes));
    println!(
        "{name}: {:.1} GB/s, {:.0}% of what plain loops of the same traffic reach ({:.1} GB/s)",
        bytes as f64 / ours / 1e9,
        100.0 * limit / ours,
        bytes as f64 / limit / 1e9
    );
}

/// Returns the flops per second of multiply-adds of f32, on all threads together. The totals stay in registers.
pub fn peak_flops() -> f64 {
    const ROUNDS: usize = 1 << 16;
    let threads = num_threads();
    let chains = multiply_adds(1);
    let seconds = shortest(|| {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| multiply_adds(black_box(ROUNDS)));
            }
        });
    });
    (threads * ROUNDS * 2 * chains) as f64 / seconds
}

/// The number of independent chains of multiply-adds with AVX-512: 16 vectors of 16 elements, in 32 registers. A processor completes two
/// vectors per cycle after a latency of 4 or 5 cycles, so 10 vectors reach the peak.
const CHAINS_OF_AVX512: usize = 16 * 16;

/// The number of chains without AVX-512. AVX2 has 16 registers, for 12 vectors of 8 elements and two constants. NEON has 32 registers, for 24
/// vectors of 4 elements. With more totals than registers the figure is too low. With AVX2 on one core of an AMD EPYC (Zen 4), 96 chains reach
/// 118 GFLOP/s, and 256 chains 54.
const CHAINS: usize = 12 * 8;

/// Makes `rounds` multiply-adds in each of several independent chains. Returns the number of chains, which depends on the instruction set.
fn multiply_adds(rounds: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has AVX-512 F, as checked above. AVX-512 F implies FMA.
            #[allow(unsafe_code)]
            unsafe {
                multiply_adds_avx512(rounds);
            }
            return CHAINS_OF_AVX512;
        }
        if std::arch::is_x86_feature_detected!("fma") && std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2 and FMA, as checked above.
            #[allow(unsafe_code)]
            unsafe {
                multiply_adds_avx2(rounds);
            }
            return CHAINS;
        }
    }
    run_chains::<CHAINS>(rounds);
    CHAINS
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,fma")]
fn multiply_adds_avx512(rounds: usize) {
    run_chains::<CHAINS_OF_AVX512>(rounds);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn multiply_adds_avx2(rounds: usize) {
    run_chains::<CHAINS>(rounds);
}

/// Makes `rounds` multiply-adds in each of `N` chains. It is inlined, so that it uses the instruction set of its caller.
#[inline(always)]
fn run_chains<const N: usize>(rounds: usize) {
    let mut totals = [black_box(1f32); N];
    for _ in 0..rounds {
        for total in &mut totals {
            *total = total.mul_add(0.999, 0.001);
        }
    }
    black_box(totals.iter().sum::<f32>());
}

/// Prints the speed of `work`, which has `flops` flops, as a share of `peak`, the peak speed in flops per second.
pub fn against_peak(name: &str, flops: f64, peak: f64, work: impl FnMut()) {
    let reached = flops / shortest(work);
    println!(
        "{name}: {:.1} GFLOP/s, {:.0}% of the measured peak ({:.1})",
        reached / 1e9,
        100.0 * reached / peak,
        peak / 1e9
    );
}

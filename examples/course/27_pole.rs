//! 27. Reinforcement learning: a network learns to keep a pole on a cart upright.
//!
//! Many carts run at once. In each step the network gives the probability of a push to the right, a push is drawn, and the
//! carts move. Pushes that were followed by more time upright than usual become more likely, by the gradient of Σ log π(push) ·
//! (return - usual return). (Williams 1992, "Simple statistical gradient-following algorithms". The cart is from Barto, Sutton
//! and Anderson, 1983.)

use std::process::ExitCode;

use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, run};

fn main() -> ExitCode {
    let options = Options::new("27_pole", "A pole on a cart, kept upright by policy gradients");
    run(options.count("rounds", 60, "Number of updates"), learn)
}

/// The number of carts that run at the same time.
const CARTS: usize = 32;
/// The largest number of steps of 0.02 s in an episode.
const LONGEST: usize = 300;

/// Returns the carts `[CARTS, 4]` after one step of 0.02 s. The columns are position and speed of the cart, and angle
/// and angular speed of the pole. `push` is 1 for 10 N to the right, and 0 for 10 N to the left.
fn moved(state: &Tensor, push: &Tensor) -> Tensor {
    const CART: f32 = 1.0;
    const POLE: f32 = 0.1;
    const HALF: f32 = 0.5; // of the pole's length
    let [x, v, angle, spin] = state.chunk_into(1);
    let push = (push * 2.0 - 1.0).unsqueeze(1) * 10.0;
    let (sin, cos) = (angle.sin(), angle.cos());
    let acceleration = (&push + spin.square() * &sin * (POLE * HALF)) / (CART + POLE);
    let angular_acceleration =
        (&sin * 9.8 - &cos * &acceleration) / ((cos.square() * (-POLE / (CART + POLE)) + 4.0 / 3.0) * HALF);
    let cart_acceleration = acceleration - &angular_acceleration * cos * (POLE * HALF / (CART + POLE));
    cat(&[x + &v * 0.02, v + cart_acceleration * 0.02, angle + &spin * 0.02, spin + angular_acceleration * 0.02], 1)
}

/// Returns ones for the carts that are on their track with the pole upright, else zeros.
fn upright(state: &Tensor) -> Tensor {
    let (x, angle) = (state.select(1, 0), state.select(1, 2));
    x.abs().lt(2.4).logical_and(angle.abs().lt(12f32.to_radians())).cast()
}

/// One episode of each cart: states `[steps, CARTS, 4]`, pushes `[steps, CARTS]`, and `alive` `[steps, CARTS]`. An element of `alive` is 1
/// while the cart is on its track with the pole upright, and then 0.
struct Episodes {
    states: Tensor,
    pushes: Tensor,
    alive: Tensor,
}

fn play(policy: &Sequential, generator: &mut Generator) -> Episodes {
    let mut state = Tensor::rand([CARTS, 4], generator) * 0.1 - 0.05;
    let mut alive = Tensor::ones([CARTS]);
    let (mut states, mut pushes, mut lives) = (Vec::new(), Vec::new(), Vec::new());
    while states.len() < LONGEST && alive.sum(..).item() > 0.0 {
        let right = policy.forward(&state).squeeze(1).sigmoid();
        let push: Tensor = Tensor::rand([CARTS], generator).lt(&right).cast();
        let next = moved(&state, &push);
        states.push(state);
        pushes.push(push);
        lives.push(alive.clone());
        alive = &alive * upright(&next);
        state = next;
    }
    Episodes { states: stack(&states, 0), pushes: stack(&pushes, 0), alive: stack(&lives, 0) }
}

fn learn(options: &Options) -> Result {
    let rounds: usize = options.get("rounds");
    let generator = &mut Generator::new(options.seed());
    let mut policy =
        Sequential::new().add(Linear::new(4, 32, generator)).add(wengert::nn::Tanh).add(Linear::new(32, 1, generator));
    let mut adam = AdamW::new(2e-2);
    let mut lengths = Vec::new();
    for round in 1..=rounds {
        let Episodes { states, pushes, alive } = play(&policy, generator);
        // The discounted time upright from each step on: a running sum from the end.
        let mut left = Tensor::<f32>::zeros([CARTS]);
        let mut returns = Vec::new();
        for step in (0..alive.shape()[0]).rev() {
            left = alive.select(0, step) * (left * 0.98 + 1.0);
            returns.push(left.clone());
        }
        returns.reverse();
        let returns = stack(&returns, 0);
        // The difference of each return from the mean return of the upright carts, in standard deviations.
        let count = alive.sum(..);
        let mean = (&returns * &alive).sum(..) / &count;
        let difference = (&returns - mean) * &alive;
        let deviation = (difference.square().sum(..) / &count).sqrt() + 1e-6;
        let advantage = difference / deviation;

        let (_, mut gradients) = Tape::training(generator).value_and_gradients(|tape| {
            let score = policy.forward(tape.constant(&states)).squeeze(-1);
            // log π of the drawn push: log σ(s) to the right, log σ(-s) to the left.
            let likelihood = (score * (&pushes * 2.0 - 1.0)).logsigmoid();
            -(likelihood * &advantage).sum(..) / count.item()
        });
        gradients.clip_norm(1.0);
        adam.step(&mut policy, &gradients);

        let mean = count.item() / CARTS as f32;
        lengths.push((round as f64, f64::from(mean)));
        if round == 1 || round % 10 == 0 {
            println!("round {round:>3}   upright for {mean:.0} steps of at most {LONGEST}");
        }
    }

    let (first, last) = (lengths[0].1, lengths[lengths.len() - 1].1);
    let chart = Chart::new("Time upright, mean of 32 carts", "round", "steps of 0.02 s").line("", 0, lengths);
    options.write("upright.svg", chart.to_svg()?)?;
    println!("upright for {:.1} s at the end, {:.1} s at the start", last * 0.02, first * 0.02);
    Ok(())
}

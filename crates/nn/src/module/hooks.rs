//! Functions that see or change the outputs of layers. The model itself stays unchanged.

use std::collections::HashMap;
use std::rc::Rc;

use wengert_autograd::Var;
use wengert_macros::{precompiled, twins};
use wengert_tensor::Float;

use crate::module::Module;
use crate::module::module::walk_modules;
use crate::trace::{self, Hook, ModuleKey};
use crate::{Error, Result};

/// A list of functions, called hooks. While [`run`](Self::run) runs, each hook is called with the output of one layer, and returns the variable
/// that replaces this output. PyTorch: `Module.register_forward_hook`.
///
/// A hook can return [`map_gradient`](Var::map_gradient) of the output. It then changes the gradient of the output and not its value. PyTorch:
/// `Module.register_full_backward_pre_hook`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// use wengert::prelude::*;
/// use wengert::nn::{Generator, Hooks, Layer, Linear, ReLU, Sequential};
///
/// let generator = &mut Generator::new(0);
/// let model: Sequential =
///     Sequential::new().add(Linear::new(4, 8, generator)).add(ReLU).add(Linear::new(8, 2, generator));
/// let active = Rc::new(RefCell::new(Vec::new()));
/// let kept = Rc::clone(&active);
/// let hooks = Hooks::new().output("1", move |y| {
///     kept.borrow_mut().push(y.value().gt(0.0).cast::<f32>().mean(..).item()); // the share of active units
///     y
/// });
/// let x = Tensor::randn([16, 4], generator);
/// let with = hooks.run(&model, || model.forward(&x));
/// assert_eq!(with, model.forward(&x)); // this hook only observes
/// assert!(active.borrow().len() == 1 && (0.0..=1.0).contains(&active.borrow()[0]));
/// ```
///
/// A hook names its layer by a path, for example `features.3`. This is the path of the layer's parameters without the last part.
/// [`Module::summary_with`] lists the paths. The hooks apply to the current thread, and only to layers of the model that `run` gets. If a layer
/// has several results (for example an LSTM), its hook gets the first one.
///
/// Layers of this crate can be called by `forward` or `try_forward`. For a layer of your own, the hook runs if the layer is called by `forward`, or
/// by a [`Sequential`](crate::Sequential), a `Vec`, an `Option` or a `Box` that contains it. For a [`Normalize`](crate::Normalize), the hook runs in
/// the same cases. For recurrent cells and the `out_proj` of a [`MultiheadAttention`](crate::MultiheadAttention), a hook never runs.
#[doc(alias("register_forward_hook"))]
#[derive(Clone)]
pub struct Hooks<T: Float = f32> {
    hooks: Vec<(String, Hook<T>)>,
}

impl<T: Float> Default for Hooks<T> {
    fn default() -> Self {
        Hooks { hooks: Vec::new() }
    }
}

#[twins]
impl<T: Float> Hooks<T> {
    /// Returns an empty list of hooks.
    pub fn new() -> Self {
        Hooks::default()
    }

    /// Adds a hook for the layer at `path`. It gets the output of the layer, and returns the variable that replaces the output. The hooks of one
    /// layer are called in the order in which they were added.
    #[must_use]
    pub fn output(mut self, path: &str, hook: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T> + 'static) -> Self {
        self.hooks.push((path.to_owned(), Rc::new(hook)));
        self
    }

    /// Calls `forward` with the hooks on the layers of `model`, and returns the result of `forward`.
    ///
    /// # Errors
    ///
    /// [`Error::Hook`] if `model` has no module at one of the paths, or if `forward` did not call the layer at one of them. Also if a layer
    /// cannot be distinguished from another one, because both are fields without data (for example `ReLU`) that the compiler placed at one
    /// address.
    pub fn try_run<R>(&self, model: &impl Module<T>, forward: impl FnOnce() -> R) -> Result<R> {
        let keys = module_keys(model.as_module(), &self.hooks)?;
        let hooks = keys.into_iter().zip(&self.hooks).map(|(key, (_, hook))| (key, Rc::clone(hook))).collect();
        let (result, calls) = trace::with_hooks(hooks, forward);
        match calls.iter().position(|&calls| calls == 0) {
            None => Ok(result),
            Some(unused) => {
                let path = self.hooks[unused].0.clone();
                Err(Error::Hook { path, problem: "the function did not call a layer there".to_owned() })
            }
        }
    }
}

/// Returns the key of the module at the path of each hook, in the order of the hooks. A path without a module is an
/// error, and so is a module whose key another module has too.
#[precompiled]
fn module_keys<T: Float>(model: &dyn Module<T>, hooks: &[(String, Hook<T>)]) -> Result<Vec<ModuleKey>> {
    let (mut key_by_path, mut paths_by_key) = (HashMap::new(), HashMap::<ModuleKey, Vec<String>>::new());
    walk_modules(model, &mut String::new(), &mut |path, module| {
        let key = trace::module_key(module, module.type_name());
        key_by_path.entry(path.to_owned()).or_insert(key);
        paths_by_key.entry(key).or_default().push(path.to_owned());
    });
    let key = |(path, _): &(String, Hook<T>)| {
        let problem = match key_by_path.get(path).map(|key| (key, &paths_by_key[key][..])) {
            Some((key, [_])) => return Ok(*key),
            Some((_, paths)) => format!("it cannot be distinguished from its neighbours: {}", paths.join(", ")),
            None => {
                let mut known: Vec<&str> =
                    key_by_path.keys().map(String::as_str).filter(|path| !path.is_empty()).collect();
                known.sort_unstable();
                format!("the model has no layer there; its layers are {}", known.join(", "))
            }
        };
        Err(Error::Hook { path: path.clone(), problem })
    };
    hooks.iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::mpsc;

    use wengert_autograd::prelude::*;

    use crate::{Error, GRU, Generator, Hooks, Layer, Linear, Module, ReLU, Result, Sequential};

    /// A layer that a user defines. It calls its inner layer by `try_forward`.
    #[derive(Module)]
    struct Doubled {
        inner: Linear<f64>,
    }

    impl Layer<f64> for Doubled {
        fn try_forward<'t>(&self, x: Var<'t, f64>) -> Result<Var<'t, f64>> {
            Ok(self.inner.try_forward(x)? * 2.0)
        }
    }

    fn model() -> (Sequential<f64>, Tensor<f64>) {
        let generator = &mut Generator::new(0);
        let inner = Linear::new(3, 4, generator);
        let model = Sequential::new().add(Doubled { inner }).add(ReLU).add(Linear::new(4, 2, generator));
        (model, Tensor::randn([5, 3], generator))
    }

    #[test]
    fn each_output_passes_once_also_inside_of_boxes_and_of_layers_of_users() {
        let (model, x) = model();
        for path in ["0", "0.inner", "1", "2", ""] {
            let seen = Rc::new(RefCell::new(Vec::new()));
            let kept = Rc::clone(&seen);
            let hooks = Hooks::new().output(path, move |y| {
                kept.borrow_mut().push(y.shape().to_vec());
                y
            });
            assert_eq!(hooks.run(&model, || model.forward(&x)), model.forward(&x));
            let columns = if ["2", ""].contains(&path) { 2 } else { 4 };
            assert_eq!(*seen.borrow(), [[5, columns]], "path {path:?}");
        }
    }

    #[test]
    fn outputs_and_gradients_are_replaced_only_during_the_run() {
        let (model, x) = model();
        let zeros = Hooks::new().output("1", |y| y * 0.0);
        let bias = model.named_parameters()[3].1.value.clone();
        let found = zeros.run(&model, || model.forward(&x));
        assert_eq!(found, bias.expand([5, 2]));
        assert_ne!(model.forward(&x), found);

        let gradients = |hooks: &Hooks<f64>| {
            let tape = Tape::new();
            hooks.run(&model, || model.forward(tape.constant(&x)).square().sum(..)).backward()
        };
        let weight = model.named_parameters()[0].1;
        let (plain, tripled) = (Hooks::new(), Hooks::new().output("0", |y| y.map_gradient(|g| g * 3.0)));
        let difference = (gradients(&plain).of(weight) * 3.0 - gradients(&tripled).of(weight)).abs().amax(..).item();
        assert!(difference < 1e-12, "{difference}");
        // Two hooks of one layer run in the order in which they were added. So the result is (y + 1) · 0, and not y · 0 + 1.
        let both = Hooks::new().output("2", |y| y + 1.0).output("2", |y| y * 0.0);
        assert_eq!(both.run(&model, || model.forward(&x)).to_vec(), [0.0; 10]);
    }

    #[test]
    fn a_layer_with_a_state_passes_its_first_result() {
        let generator = &mut Generator::new(0);
        let gru: GRU<f64> = GRU::new(3, 4, generator);
        let x = Tensor::<f64>::randn([2, 5, 3], generator);
        let hooks = Hooks::new().output("", |y| y * 0.0);
        let tape = Tape::new();
        let y = hooks.run(&gru, || gru.forward_from(tape.constant(&x), None).0);
        assert!(y.value().iter().all(|y| y == 0.0));
    }

    /// A model whose `try_forward` calls its layers by `try_forward`. Each layer gets the output of the layer before
    /// it.
    #[derive(Module)]
    struct Calls<L: Layer<f64>> {
        first: L,
        rest: Option<Sequential<f64>>,
        list: Vec<Linear<f64>>,
    }

    impl<L: Layer<f64>> Layer<f64> for Calls<L> {
        fn try_forward<'t>(&self, x: Var<'t, f64>) -> Result<Var<'t, f64>> {
            self.list.try_forward(self.rest.try_forward(self.first.try_forward(x)?)?)
        }
    }

    #[test]
    fn layers_that_are_called_by_try_forward_are_seen() {
        use crate::{
            AlphaDropout, Dropout, Dropout1d, FeatureAlphaDropout, Identity, RReLU, Sigmoid, TransformerEncoder,
            TransformerEncoderLayer, TransformerOptions,
        };
        /// Returns the numbers of calls of the hook at `path` on a training tape and on an evaluating tape. Also returns true if the summary
        /// has the shape of the output.
        fn calls<L: Layer<f64>>(first: L, path: &str) -> (Vec<usize>, bool) {
            let generator = &mut Generator::new(0);
            let rest = Sequential::new().add(Linear::new(4, 4, generator)).add(Sigmoid);
            let model = Calls { first, rest: Some(rest), list: vec![Linear::new(4, 4, generator)] };
            let x = Tensor::randn([2, 3, 4], generator);
            let counts = [Tape::training(generator), Tape::new()].map(|tape| {
                let count = Rc::new(RefCell::new(0));
                let kept = Rc::clone(&count);
                let hooks = Hooks::new().output(path, move |y| {
                    *kept.borrow_mut() += 1;
                    y
                });
                let result = hooks.try_run(&model, || model.forward(tape.constant(&x)).value());
                assert!(result.is_ok() || *count.borrow() == 0);
                count.take()
            });
            let summary = model.summary_with(|tape| {
                model.forward(tape.constant(&x));
            });
            let line = summary.lines().find(|line| line.trim_start().starts_with(path)).unwrap_or_default();
            (counts.to_vec(), line.contains("[2, 3, 4]"))
        }
        let generator = &mut Generator::new(0);
        let options = TransformerOptions::new(4, 2);
        let layer = TransformerEncoderLayer::new(&options, generator);
        let stack = TransformerEncoder::new(&options, 1, generator);
        let found = [
            calls(ReLU, "first"),
            calls(Identity, "first"),
            calls(Dropout::new(0.5), "first"),
            calls(Dropout::new(0.0), "first"),
            calls(Dropout1d::new(0.5), "first"),
            calls(AlphaDropout::new(0.5), "first"),
            calls(AlphaDropout::new(1.0), "first"),
            calls(FeatureAlphaDropout::new(0.5), "first"),
            calls(RReLU::new(0.1, 0.3), "first"),
            calls(layer, "first"),
            calls(stack.clone(), "first"),
            calls(stack, "first.layers.0"),
            calls(ReLU, "rest"),
            calls(ReLU, "rest.1"),
            calls(ReLU, "list"),
            calls(ReLU, "list.0"),
        ];
        assert!(found.iter().all(|found| *found == (vec![1, 1], true)), "{found:?}");
    }

    #[test]
    fn mistakes_are_errors_with_the_path() {
        let (model, x) = model();
        let error = Hooks::new().output("3", |y| y).try_run(&model, || ()).unwrap_err();
        assert!(matches!(&error, Error::Hook { path, .. } if path == "3"), "{error}");
        assert_eq!(error.to_string(), "the hook at '3': the model has no layer there; its layers are 0, 0.inner, 1, 2");
        let error = Hooks::new().output("2", |y| y).try_run(&model, || model.layers()[0].forward(&x)).unwrap_err();
        assert_eq!(error.to_string(), "the hook at '2': the function did not call a layer there");
        #[derive(Module)]
        struct Twins {
            linear: Linear<f64>,
            first: ReLU,
            second: ReLU,
        }
        let twins = Twins { linear: Linear::new(2, 2, &mut Generator::new(0)), first: ReLU, second: ReLU };
        let hooks = Hooks::<f64>::new().output("second", |y| y);
        let result = hooks.try_run(&twins, || twins.second.forward(&Tensor::<f64>::zeros([1])));
        // The compiler may give two fields without data the same address.
        if std::ptr::eq(&raw const twins.first, &raw const twins.second) {
            let text = result.unwrap_err().to_string();
            assert_eq!(text, "the hook at 'second': it cannot be distinguished from its neighbours: first, second");
        } else {
            assert!(result.is_ok());
        }
        assert_eq!(twins.first.forward(&twins.linear.forward(&Tensor::<f64>::zeros([1, 2]))).shape(), &[1, 2]);
    }

    #[test]
    fn a_panic_removes_the_hooks() {
        let (model, x) = model();
        let hooks = Hooks::new().output("2", |y| y * 0.0);
        let panicking = std::panic::AssertUnwindSafe(|| hooks.run(&model, || panic!("inside")));
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert!(model.forward(&x).iter().any(|y| y != 0.0));
    }

    /// Runs a model with a hook when this value is dropped, and sends the text of the error, if any.
    struct AtTheEnd(mpsc::Sender<Option<String>>);

    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            let (model, x) = model();
            let result = Hooks::new().output("2", |y| y * 0.0).try_run(&model, || model.forward(&x));
            self.0.send(result.err().map(|error| error.to_string())).expect("the test receives");
        }
    }

    thread_local! {
        static EARLY: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
    }

    #[test]
    fn hooks_in_the_destructor_of_a_thread_local_variable_are_a_result_or_an_error() {
        let (sender, results) = mpsc::channel();
        let run = move || {
            // This variable is initialized before the thread's list of hooks. So Linux destroys it after this list.
            EARLY.set(Some(AtTheEnd(sender)));
            let (model, x) = model();
            let _ = Hooks::new().output("2", |y| y).run(&model, || model.forward(&x));
        };
        std::thread::spawn(run).join().expect("the thread ends");
        let error = results.recv().expect("the destructor ran to its end");
        assert!(error.is_none_or(|error| error == "the hook at '2': the function did not call a layer there"));
    }

    /// A layer that has the same type name and the same address as its only field.
    mod wrapped {
        use super::*;

        #[derive(Module)]
        pub(super) struct Linear {
            pub(super) inner: crate::Linear<f64>,
        }

        impl Layer<f64> for Linear {
            fn try_forward<'t>(&self, x: Var<'t, f64>) -> Result<Var<'t, f64>> {
                Ok(self.inner.try_forward(x)? * 2.0)
            }
        }
    }

    #[test]
    fn a_module_and_its_first_child_have_different_keys() {
        #[derive(Module)]
        #[module(f64)]
        struct Model {
            layers: [Linear<f64>; 2],
            pair: (Linear<f64>, ReLU),
            own: wrapped::Linear,
            optional: Option<Linear<f64>>,
        }
        let generator = &mut Generator::new(0);
        let mut linear = || Linear::new(3, 3, generator);
        let model = Model {
            layers: [linear(), linear()],
            pair: (linear(), ReLU),
            own: wrapped::Linear { inner: linear() },
            optional: Some(linear()),
        };
        let x = Tensor::<f64>::ones([1, 3]);
        let forward = |tape: &Tape<f64>| {
            let x = model.layers[1].forward(model.layers[0].forward(tape.constant(&x)));
            let y = model.pair.1.forward(model.pair.0.forward(x));
            model.optional.as_ref().unwrap().forward(model.own.forward(y)).value()
        };
        for path in ["layers.0", "layers.1", "pair.0", "pair.1", "own", "own.inner", "optional"] {
            let count = Rc::new(RefCell::new(0));
            let kept = Rc::clone(&count);
            let hooks = Hooks::new().output(path, move |y| {
                *kept.borrow_mut() += 1;
                y
            });
            hooks.run(&model, || forward(&Tape::new()));
            assert_eq!(count.take(), 1, "{path}");
        }
        let error = Hooks::new().output("layers", |y| y).try_run(&model, || forward(&Tape::new())).unwrap_err();
        assert_eq!(error.to_string(), "the hook at 'layers': the function did not call a layer there");
        let table = model.summary_with(|tape| drop(forward(tape)));
        let paths: Vec<&str> = table.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
        let layers = ["layers.0", "layers.1", "pair.0", "pair.1", "own", "own.inner", "optional"];
        assert_eq!(paths[1..paths.len() - 1], layers, "{table}");
    }
}

//! Observes and changes the outputs of layers while a function runs. [`record_output_shapes`] records the shapes of the outputs, and
//! [`with_hooks`] passes the outputs to functions (hooks), which replace them.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use wengert_autograd::Var;
use wengert_tensor::{Float, Shape};

/// The key of a module: its address, and the name of its type with path and parameters. The address alone is not enough, because a struct, an array
/// or a tuple may have the same address as its first field or element.
pub(crate) type ModuleKey = (usize, &'static str);

/// A function that takes the output of a layer and returns the variable that replaces it.
pub(crate) type Hook<T> = Rc<dyn for<'t> Fn(Var<'t, T>) -> Var<'t, T>>;

thread_local! {
    /// The shapes that each running call of [`record_output_shapes`] has recorded so far, with the outermost call first.
    static OUTPUT_SHAPES: RefCell<Vec<HashMap<ModuleKey, Shape>>> = const { RefCell::new(Vec::new()) };
    static HOOKS: RefCell<Vec<InstalledHook>> = const { RefCell::new(Vec::new()) };
}

/// A hook of one module, with the number of its calls.
struct InstalledHook {
    key: ModuleKey,
    /// A [`Hook`], whose element type is not known here.
    hook: Rc<dyn Any>,
    /// The number of outputs with which the hook was called so far.
    calls: usize,
}

/// Returns the key of `module`. `type_name` is the name of its type.
pub(crate) fn module_key<M: ?Sized>(module: &M, type_name: &'static str) -> ModuleKey {
    (std::ptr::from_ref(module).cast::<()>().addr(), type_name)
}

/// The output of a layer: a variable with elements of type `T`, or a pair of this variable and another result (for example a state).
pub(crate) trait LayerOutput<T: Float> {
    /// Returns the shape of the output's variable.
    fn output_shape(&self) -> Shape;

    /// Returns the output with its variable replaced by the variable that `hook` returns for it.
    fn apply_hook(self, hook: &Hook<T>) -> Self;
}

impl<T: Float> LayerOutput<T> for Var<'_, T> {
    fn output_shape(&self) -> Shape {
        self.shape()
    }

    fn apply_hook(self, hook: &Hook<T>) -> Self {
        hook(self)
    }
}

impl<T: Float, S> LayerOutput<T> for (Var<'_, T>, S) {
    fn output_shape(&self) -> Shape {
        self.0.shape()
    }

    fn apply_hook(self, hook: &Hook<T>) -> Self {
        (hook(self.0), self.1)
    }
}

/// Passes an output to the hooks of the module with this key, and returns the output that the hooks return. Records the output's shape if
/// the thread is running [`record_output_shapes`].
pub(crate) fn run_hooks<T: Float, V: LayerOutput<T>>(key: impl Fn() -> ModuleKey, mut output: V) -> V {
    // The list of hooks, a thread-local variable, may be destroyed already. While a thread ends, destructors of other thread-local variables may
    // still call layers.
    let count = HOOKS.try_with(|hooks| hooks.borrow().len()).unwrap_or_default();
    for number in 0..count {
        // The list of hooks is not borrowed while a hook runs, because the hook may call layers.
        let hook = HOOKS.try_with(|hooks| {
            let mut hooks = hooks.borrow_mut();
            let hooked = hooks.get_mut(number).filter(|hooked| hooked.key == key())?;
            let hook = Rc::clone(hooked.hook.downcast_ref::<Hook<T>>()?);
            hooked.calls += 1;
            Some(hook)
        });
        if let Ok(Some(hook)) = hook {
            output = output.apply_hook(&hook);
        }
    }
    let _ = OUTPUT_SHAPES.try_with(|outputs| {
        for shapes in outputs.borrow_mut().iter_mut() {
            shapes.insert(key(), output.output_shape());
        }
    });
    output
}

/// Returns the number of calls so far of all hooks of the module with this key.
pub(crate) fn hook_call_count(key: impl FnOnce() -> ModuleKey) -> usize {
    let count = |hooks: &RefCell<Vec<InstalledHook>>| {
        let hooks = hooks.borrow();
        if hooks.is_empty() {
            return 0;
        }
        let key = key();
        hooks.iter().filter(|hooked| hooked.key == key).map(|hooked| hooked.calls).sum()
    };
    HOOKS.try_with(count).unwrap_or_default()
}

/// Returns true if this thread has hooks or records shapes, so that [`run_hooks`] has an effect.
pub(crate) fn is_active() -> bool {
    let records = OUTPUT_SHAPES.try_with(|outputs| !outputs.borrow().is_empty()).unwrap_or_default();
    records || HOOKS.try_with(|hooks| !hooks.borrow().is_empty()).unwrap_or_default()
}

/// Calls `run` while each output of a layer on this thread passes through those `hooks` that have the layer's key, in the order of the list.
/// Returns the result of `run`, and the number of calls of each hook. If the thread is ending and its list of hooks is already destroyed, no
/// hook is called.
pub(crate) fn with_hooks<T: Float, R>(hooks: Vec<(ModuleKey, Hook<T>)>, run: impl FnOnce() -> R) -> (R, Vec<usize>) {
    /// A guard that holds the number of earlier hooks on this thread. When it is dropped, it removes all later hooks, also if `run` panics.
    struct NewHooksGuard(usize);
    impl Drop for NewHooksGuard {
        fn drop(&mut self) {
            let newer = HOOKS.try_with(|hooks| {
                let mut hooks = hooks.borrow_mut();
                let count = hooks.len();
                hooks.split_off(self.0.min(count))
            });
            // The list of hooks is not borrowed at this point, because a value in a hook may call layers when it is dropped.
            drop(newer);
        }
    }
    let count = hooks.len();
    let guard = NewHooksGuard(HOOKS.try_with(|hooks| hooks.borrow().len()).unwrap_or_default());
    let hooked = hooks.into_iter().map(|(key, hook)| InstalledHook { key, hook: Rc::new(hook), calls: 0 });
    let _ = HOOKS.try_with(|all| all.borrow_mut().extend(hooked));
    let result = run();
    let calls = HOOKS.try_with(|hooks| hooks.borrow()[guard.0..].iter().map(|hooked| hooked.calls).collect());
    (result, calls.unwrap_or_else(|_| vec![0; count]))
}

/// Calls `run`. Returns the shape of the last output of each layer that `run` called on this thread. `run` may call this function again. An output
/// during the inner call is then recorded by both calls.
pub(crate) fn record_output_shapes(run: impl FnOnce()) -> HashMap<ModuleKey, Shape> {
    /// A guard that holds the number of outer calls. When it is dropped, it removes the shapes of this call, also if `run` panics.
    struct ShapesGuard(usize);
    impl Drop for ShapesGuard {
        fn drop(&mut self) {
            let _ = OUTPUT_SHAPES.try_with(|outputs| outputs.borrow_mut().truncate(self.0));
        }
    }
    // If the thread is ending and its list is already destroyed, no shapes are recorded.
    let guard = ShapesGuard(OUTPUT_SHAPES.try_with(|outputs| outputs.borrow().len()).unwrap_or_default());
    let _ = OUTPUT_SHAPES.try_with(|outputs| outputs.borrow_mut().push(HashMap::new()));
    run();
    let shapes = OUTPUT_SHAPES.try_with(|outputs| outputs.borrow_mut().drain(guard.0..).next());
    shapes.ok().flatten().unwrap_or_default()
}

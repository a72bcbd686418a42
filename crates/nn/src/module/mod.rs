//! Modules: layers, and models made of layers.

mod bind;
mod containers;
mod hooks;
mod leaf;
#[allow(clippy::module_inception)]
mod module;
mod table;

pub use bind::{bind_vector, try_bind_vector};
pub use hooks::Hooks;
pub(crate) use leaf::update_buffer;
pub use leaf::{AnyBuffer, Leaf, LeafMut};
pub use module::{Module, try_update_buffers, update_buffers};
pub(crate) use module::{is_below, parameter_paths, walk_mut};

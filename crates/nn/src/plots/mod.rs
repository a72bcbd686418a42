//! Pictures of a training and of what came out of it, as SVG: text that a browser shows, without fonts to install. Each function returns
//! the picture; [`write_atomically`](crate::write_atomically) makes a file of it. [`Page`] puts several on one HTML page.
//!
//! The recorded program is drawn by [`Graph::to_svg`](wengert_autograd::Graph::to_svg).

mod curves;
mod images;
mod matrix;
mod page;
mod plane;
mod style;

pub use curves::{lines, precision_recall, roc};
pub use images::{filters, image_grid};
pub use matrix::confusion_matrix;
pub use page::Page;
pub use plane::{decision_boundary, points};

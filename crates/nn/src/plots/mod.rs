//! Pictures of a training run and its results, as SVG, which any browser shows. Drawing needs no installed fonts. Each function returns the picture
//! as text; [`write_atomically`](crate::write_atomically) writes it to a file. [`Page`] collects pictures on one HTML page.
//!
//! [`Graph::to_svg`](wengert_autograd::Graph::to_svg) draws a recorded program.

mod chart;
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

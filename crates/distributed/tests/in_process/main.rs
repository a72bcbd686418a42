//! Ranks that are threads of one process.

mod any_number_of_ranks_gives_the_same_bits;
mod recorded_steps;

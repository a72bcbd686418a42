//! The laws that cross crates, one module each. One program compiles and links their shared code once. Tests that change
//! or measure a property of the whole process are in `alone.rs`. `sources`, `fixtures` and `model_check` have code that several laws share.

mod a_closed_output_ends_no_training;
mod a_kill_leaves_a_whole_file;
mod a_killed_run_ends_the_same;
mod absurd_sizes_are_errors;
mod arrays_are_pytorchs;
mod broadcasting_equals_ndarray;
mod compile_errors;
mod copy_on_write;
mod course_chapters_quote_the_programs;
mod damaged_files_are_errors;
mod every_file_runs;
mod expand_and_sum_to_are_adjoint;
mod fixtures;
mod front_pages;
mod gradcheck_every_operation;
mod gradients_at_edges;
mod hints_name_existing_code;
mod layers_are_pytorchs;
mod levels;
mod losses_are_pytorchs;
mod matrices_are_pytorchs;
mod model_check;
mod names_of_pytorch_are_found;
mod optimizers_are_pytorchs;
mod pages;
mod plain_english;
mod pool_protocol;
mod schedules_are_pytorchs;
mod semantics;
mod sequences_are_pytorchs;
mod sizes_of_every_operation;
mod sources;
mod the_callers_line;
mod threads_protocol;
mod vmap_every_operation;

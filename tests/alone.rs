//! The laws about properties of the whole process: the number of threads, the instruction set, the pool, memory. They run in
//! their own process, one at a time: each test takes `wengert_tests::alone`.

mod any_thread_count_gives_the_same_bits;
mod endurance;
mod equal_bits;
mod every_engine;
mod faults;
mod hostile_files_need_bounded_memory;
mod memory_is_flat;
mod training_twice_gives_the_same_file;

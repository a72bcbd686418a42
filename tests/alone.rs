//! The laws about properties of the whole process: the number of threads, the instruction set, the pool, memory. They run in
//! their own process. Each test that changes or measures a property takes `wengert_tests::alone`, so these tests run one at a time.

mod any_thread_count_gives_the_same_bits;
mod endurance;
mod equal_bits;
mod every_engine;
mod faults;
mod hostile_files_need_bounded_memory;
mod memory_is_flat;
mod training_twice_gives_the_same_file;

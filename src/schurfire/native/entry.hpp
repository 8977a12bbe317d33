// The two computations, for any caller: whole problems instead of single groups of lanes.
#pragma once

#include <cstddef>
#include <functional>

#include "orthogonal.hpp"
#include "powers.hpp"
#include "problem.hpp"

namespace schurfire {

// Calls work(0), ..., work(count - 1) in any order, perhaps on several threads, and returns when all are done.
using Parallel = std::function<void(int64_t count, const std::function<void(int64_t)>& work)>;

// Why a problem cannot be computed; null if it can.
template <class T>
const char* fault(const Problem<T>& problem);

// Multiplications and additions of a forward pass: whether threads are worth waking.
template <class T>
int64_t operations(const Problem<T>& problem);

// x_end and, if wanted, y and the states x.
template <class T>
void respond(const Problem<T>& problem, const Parallel& parallel);

// The gradients, from y_bar, x_end_bar and the states x of the same problem.
template <class T>
void differentiate(const Problem<T>& problem, const Parallel& parallel);

// Why a stack of so many matrices of order n cannot be treated; null if it can.
const char* fault_of_stack(int64_t models, int64_t n);

// Which models are proven.
template <class T>
void prove(const Powers<T>& powers, const Parallel& parallel);

// The matrices Q, and which were within reach.
template <class T>
void orthogonalise(const Orthogonal<T>& matrices, const Parallel& parallel);

// The instruction set in use: "avx512", "avx2" or "baseline".
const char* instruction_set();

}  // namespace schurfire

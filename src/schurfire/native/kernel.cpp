// The kernels of one instruction set, gathered for entry.cpp.
#include "kernel.hpp"

#include "lanes.hpp"

namespace schurfire::SCHURFIRE_INSTRUCTIONS {

// In recurrence.cpp, powers.cpp and orthogonal.cpp.
template <class T>
int64_t scratch_size(const Problem<T>&);
template <class T>
void forward(const Pass<T>&, int64_t group, T* scratch);
template <class T>
void backward(const Pass<T>&, int64_t group, T* scratch);
template <class T>
int64_t powers_scratch(int64_t n);
template <class T>
bool powers_prove(const Powers<T>&, int64_t model, T* scratch);
template <class T>
int64_t orthogonal_scratch(int64_t n);
template <class T>
bool orthogonalise(const Orthogonal<T>&, int64_t model, T* scratch);

template <class T>
constexpr Kernel<T> kernel = {width<T>,          scratch_size<T>,       forward<T>,      backward<T>,
                              powers_scratch<T>, powers_prove<T>, orthogonal_scratch<T>, orthogonalise<T>};

extern const Kernel<float> kernel_of_float;
extern const Kernel<double> kernel_of_double;
const Kernel<float> kernel_of_float = kernel<float>;
const Kernel<double> kernel_of_double = kernel<double>;

}  // namespace schurfire::SCHURFIRE_INSTRUCTIONS

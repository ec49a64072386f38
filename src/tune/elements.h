#pragma once

#include "core/elements.h"

# make check-kill: the program to kill, built as a user builds it, and the one that checks its recording.

KILL_BINS := $(B)/tests/kill/churn $(B)/tests/kill/match
kill.objs := $(B)/tests/kill/match.o

$(B)/tests/kill/churn: tests/kill/churn.c tests/kill/model.h | $(SIMCUDA)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -isystem src/sim/include -o $@ $< -L$(B)/simcuda -Wl,--allow-shlib-undefined -l:libcudart.so.13 -lpthread

$(B)/tests/kill/match: $(kill.objs) $(FORMAT_LIB) $(CORE_LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $^ $(ALL_LDFLAGS)

.PHONY: kill-bins
kill-bins: $(KILL_BINS)

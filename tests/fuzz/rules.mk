# make fuzz: the readers of untrusted bytes, under the sanitizers.  Runs the main of gpumem-report, renamed, and the
# parser of gpumem-replay's arguments.

FUZZ      := $(B)/tests/fuzz/fuzz
fuzz.objs := $(call obj,$(sort $(wildcard tests/fuzz/*.c)) tests/unit/format/recording_builder.c) $(B)/tests/fuzz/report_main.o $(B)/tests/fuzz/replay_arguments.o

$(B)/tests/fuzz/report_main.o: tools/gpumem-report/main.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -Wno-missing-prototypes -Dmain=gpc_report_main -MMD -MP -c -o $@ $<

# Renamed, because gpumem-report has a function of the same name.
fuzz.replay := -Dgpc_arguments_read=gpc_replay_arguments_read
$(B)/tests/fuzz/target_replay.o: ALL_CPPFLAGS += $(fuzz.replay)
$(B)/tests/fuzz/replay_arguments.o: tools/gpumem-replay/arguments.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(fuzz.replay) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(FUZZ): $(fuzz.objs) $(HTML_OBJ) \
  $(call obj,$(filter-out %/main.c,$(REPORT_SRCS)) $(filter tools/gpumem-replay/trace%,$(REPLAY_SRCS)) $(KIT_SRCS)) $(RUNTIME_LIB) $(REPLAY_LIB) $(SIM_LIB) $(FORMAT_LIB) $(CORE_LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZE) $(LDFLAGS) $(REPORT_LIBS) -lz -lpthread -ldl

.PHONY: fuzz-bin
fuzz-bin: $(FUZZ)

# make fuzz: the readers of foreign bytes, under the sanitizers.  Of the report its own main is run, by another name.

FUZZ      := $(B)/tests/fuzz/fuzz
fuzz.objs := $(call obj,$(sort $(wildcard tests/fuzz/*.c)) tests/unit/format/recording_builder.c) $(B)/tests/fuzz/report_main.o

$(B)/tests/fuzz/report_main.o: tools/gpumem-report/main.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -Wno-missing-prototypes -Dmain=gpc_report_main -MMD -MP -c -o $@ $<

$(FUZZ): $(fuzz.objs) $(HTML_OBJ) \
  $(call obj,$(filter-out %/main.c,$(REPORT_SRCS)) $(filter tools/gpumem-replay/trace%,$(REPLAY_SRCS))) $(RUNTIME_LIB) $(REPLAY_LIB) $(SIM_LIB) $(FORMAT_LIB) $(CORE_LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZE) $(LDFLAGS) $(REPORT_LIBS) -lz -lpthread -ldl

.PHONY: fuzz-bin
fuzz-bin: $(FUZZ)

-- SPDX-License-Identifier: Apache-2.0
-- job_submit.lua: `sbatch --comment=gpucache` switches gpucache on (taskprolog), where Slurm does not pass the comment to
-- the TaskProlog.  Add the lines to the site's own job_submit.lua, if it has one.  srun and salloc send no environment here.

function slurm_job_submit(job, partitions, uid)
	if job.environment and (" " .. (job.comment or "") .. " "):find(" gpucache ", 1, true) then
		job.environment["GPUCACHE"] = "1"
	end
	return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
	return slurm.SUCCESS
end
